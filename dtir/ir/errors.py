"""Exceptions of the IR layer (see `dtir.schema.errors` for what an exception means here)."""

from __future__ import annotations

from dtir.schema.errors import SchemaError


class InvalidIdError(SchemaError, ValueError):
    """A text is not an identifier of the wanted kind."""


class BindingError(SchemaError, ValueError):
    """A symbol is bound to a value that it cannot take, or an expression stays symbolic where a number is needed."""
