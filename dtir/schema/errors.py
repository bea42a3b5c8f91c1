"""Exceptions of the schema layer.

An exception means bad arguments, unusable text handed to a `require_*` function, or our own bug. What is wrong with a
user's *program* is a `Diagnostic`, never an exception.
"""

from __future__ import annotations


class SchemaError(Exception):
    """Base of every error that the schema layer raises."""


class SerializationError(SchemaError, ValueError):
    """A value has no canonical form, or a text is not the canonical form of anything.

    Args:
        message: one terse sentence.
        hint: where exactly, or how to mend it; what a diagnostic made of this error says as its hint.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
