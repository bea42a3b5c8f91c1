"""The explorer for ``panel serve``: one library for the process, a page for each browser."""

from __future__ import annotations

from dtir_app.gallery import examples
from dtir_app.library import Library
from dtir_app.session import create_app

app = create_app(Library((), examples()))
"""Makes the page of one browser."""
