"""Results to hand on: a page that needs no server, pictures of any view."""
