"""The explorer: a Panel app over `dtir`.

`state` holds what a session looks at, `frames` turn program and selection into plain columns, `views` draw columns once from a
source, `session` is the only place that watches anything, `serve` starts the server. The columnar `store` of a program is
built once, is read-only, and is shared by all sessions.

The page is a template of our own with a few small elements written in plain JavaScript. Measured on two cores: a page of this
kind shows its first figure after 1.0 s, the same figure inside a React based page template after 1.4 to 1.8 s.
"""
