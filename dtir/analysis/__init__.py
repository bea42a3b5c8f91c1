"""Facts derived from a program: no findings, nothing drawn, nothing printed."""
