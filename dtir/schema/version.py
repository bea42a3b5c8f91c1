"""Versions of snapshot schemas."""

from __future__ import annotations

import re

from dtir.schema.authoring import record
from dtir.schema.refinements import NonNegativeInt

_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")


@record("blueprinting.ir.schema-version", order=True)
class SchemaVersion:
    """``major.minor.patch`` of a snapshot schema."""

    major: NonNegativeInt
    minor: NonNegativeInt = 0
    patch: NonNegativeInt = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @classmethod
    def parse(cls, text: str) -> SchemaVersion:
        """Read ``a.b.c``.

        Raises:
            ValueError: not three dotted numbers.
        """
        match = _VERSION.fullmatch(text)
        if match is None:
            raise ValueError(f"schema version must be major.minor.patch, got {text!r}")
        return cls(*(int(part) for part in match.groups()))
