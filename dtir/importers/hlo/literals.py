"""Constants in HLO text: scalars, nested braces, `{...}` for values that the printer left out.

>>> parse_literal("{ { 1, 2 }, { 3, -inf } }", 4)
('1', '2', '3', '-inf')

Source of the forms: the public HLO literal printer and parser (openxla/xla).
"""

from __future__ import annotations

import re

from dtir.importers.hlo.lexing import HloSyntaxError, strip_comments
from dtir.importers.hlo.meshes import shorten

MAX_DIGITS = 1_000
"""Longest text of one value that is read."""

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan(?:\(0x[0-9a-fA-F]+\))?)"
_SCALAR = rf"(?:{_NUMBER}|true|false|\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\))"
_VALUE = re.compile(_SCALAR, re.ASCII)
_FILLER = re.compile(r"[{},\s]*")
_SHAPE_PREFIX = re.compile(r"^\s*[a-z][a-z0-9]*\[[\d,\s]*\](?:\{[^{}]*\})?\s*", re.ASCII)


def is_elided(text: str) -> bool:
    """Whether the printer left the values out."""
    return "..." in text


def parse_literal(text: str, count: int) -> tuple[str, ...]:
    """The values of an array constant, row-major, each as the text of one number; raises `HloSyntaxError`.

    `count` is the number of elements of the shape. Complex values are `(re, im)`. A value without braces may stand for
    all elements of any shape: it is given once.
    """
    body = strip_comments(text)
    body = _SHAPE_PREFIX.sub("", body) if "[" in body else body
    values = _VALUE.findall(body)
    filler = _VALUE.sub("", body)
    if _FILLER.fullmatch(filler) is None:
        raise HloSyntaxError(f"'{shorten(text.strip())}' is not a constant", 0, "hlo.literal")
    if any(len(value) > MAX_DIGITS for value in values):
        raise HloSyntaxError(f"a value of the constant has more than {MAX_DIGITS} characters", 0, "hlo.literal")
    if len(values) != count and (len(values) != 1 or "{" in body):
        raise HloSyntaxError(f"constant has {len(values)} values, its shape {count} elements", 0, "hlo.literal")
    return tuple(values)
