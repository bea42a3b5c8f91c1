"""HLO shapes: arrays, tuples and buffers, with dynamic dims and layouts, and their sizes in bytes.

>>> shape = parse_shape("(f32[2,<=3]{1,0:T(8,128)}, s4[5])")
>>> [leaf.dims for leaf in shape.leaves()], shape.size_bytes()
([(2, 3), (5,)], 27)

A size is only a number here: nothing is allocated from one.
Source of the forms: the public HLO printer and parser (openxla/xla, xla/hlo/parser/hlo_parser.cc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dtir.importers.hlo.lexing import HloSyntaxError, balanced_end, skip_space

MAX_NESTING = 100
"""Deepest tuple nesting that is read; deeper text is a diagnostic."""

DTYPE_BITS: dict[str, int] = {
    "pred": 8,
    **{f"{kind}{bits}": bits for kind in "su" for bits in (1, 2, 4, 8, 16, 32, 64)},
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "f4e2m1fn": 4,
    **{f"f8{form}": 8 for form in ("e5m2", "e4m3", "e4m3fn", "e4m3b11fnuz", "e3m4", "e5m2fnuz", "e4m3fnuz", "e8m0fnu")},
    "token": 0,
    "opaque": 0,
}
"""Bits of one element; tokens and opaque values hold no array data."""

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([\d,\s<=?]*)\]", re.ASCII)
_DIM = re.compile(r"\s*(<=)?\s*(\d+|\?)\s*", re.ASCII)
_FLAT_LAYOUT = re.compile(r"\{[^{}()\"']*+(?:\([^{}()\"']*+\)[^{}()\"']*+)*+\}")
_MAX_DIGITS = 19


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """One array: element type as HLO prints it, dim sizes (a dynamic dim: its bound), layout text.

    `dynamic[i]` is true for `<=n`; a dim without any bound (`?`) has size -1.
    """

    dtype: str
    dims: tuple[int, ...]
    dynamic: tuple[bool, ...] = ()
    layout: str = ""

    @property
    def elements(self) -> int:
        """Number of elements (bound of it for dynamic dims; 0 where a dim has no bound)."""
        count = 1
        for dim in self.dims:
            count *= max(dim, 0)
        return count

    def leaves(self) -> tuple[ArrayShape, ...]:
        """The arrays inside, in order: this one."""
        return (self,)

    def size_bytes(self) -> int:
        """Bytes of the elements without padding: ceil(elements * bits / 8)."""
        return (self.elements * DTYPE_BITS.get(self.dtype, 0) + 7) // 8

    def text(self) -> str:
        """As HLO prints it, without the layout."""
        dynamic = self.dynamic or (False,) * len(self.dims)
        dims = ",".join(
            "?" if dim < 0 else f"<={dim}" if free else str(dim) for dim, free in zip(self.dims, dynamic, strict=True)
        )
        return f"{self.dtype}[{dims}]"


@dataclass(frozen=True, slots=True)
class TupleShape:
    """A tuple of shapes; `buffer` marks the one-element form `b(...)` (a mutable buffer)."""

    elements: tuple[Shape, ...]
    buffer: bool = False

    def leaves(self) -> tuple[ArrayShape, ...]:
        """The arrays inside, depth first."""
        return tuple(_leaves(self.elements))

    def size_bytes(self) -> int:
        """Sum over the arrays inside, in bytes."""
        return sum(leaf.size_bytes() for leaf in self.leaves())

    def text(self) -> str:
        """As HLO prints it, without layouts."""
        inside = ", ".join(element.text() for element in self.elements)
        return f"b({inside})" if self.buffer else f"({inside})"


Shape: TypeAlias = ArrayShape | TupleShape


def _leaves(elements: tuple[Shape, ...]) -> Iterator[ArrayShape]:
    for element in elements:
        if isinstance(element, ArrayShape):
            yield element
        else:
            yield from _leaves(element.elements)


def leaf_count(shape: Shape) -> int:
    """How many arrays a shape holds."""
    return 1 if isinstance(shape, ArrayShape) else len(shape.leaves())


def starts_shape(text: str, pos: int) -> bool:
    """Whether a shape (rather than an opcode or a name) starts at `pos`."""
    return text.startswith(("(", "b("), pos) or _ARRAY.match(text, pos) is not None


def parse_shape(text: str) -> Shape:
    """The shape that `text` is as a whole; raises `HloSyntaxError`."""
    shape, end = scan_shape(text, skip_space(text, 0))
    if skip_space(text, end) != len(text):
        raise HloSyntaxError("unexpected text after the shape", end)
    return shape


def scan_shape(text: str, pos: int, depth: int = 0) -> tuple[Shape, int]:
    """The shape that starts at `pos` and the offset after it; raises `HloSyntaxError`."""
    if depth > MAX_NESTING:
        raise HloSyntaxError(f"shape is nested deeper than {MAX_NESTING} levels", pos)
    if text.startswith("b(", pos):
        elements, end = _scan_elements(text, pos + 1, depth)
        return TupleShape(elements, buffer=True), end
    if text.startswith("(", pos):
        elements, end = _scan_elements(text, pos, depth)
        return TupleShape(elements), end
    match = _ARRAY.match(text, pos)
    if match is None:
        raise HloSyntaxError("expected a shape such as f32[2,3]", pos)
    dtype = match.group(1)
    if dtype not in DTYPE_BITS:
        raise HloSyntaxError(f"unknown element type '{dtype}'", pos, "hlo.unknown_dtype")
    dims, dynamic = _parse_dims(match.group(2), match.start(2))
    layout, end = _scan_layout(text, match.end())
    return ArrayShape(dtype, dims, dynamic, layout), end


def _scan_elements(text: str, pos: int, depth: int) -> tuple[tuple[Shape, ...], int]:
    pos = skip_space(text, pos + 1)
    elements: list[Shape] = []
    if text.startswith(")", pos):
        return (), pos + 1
    while True:
        element, pos = scan_shape(text, pos, depth + 1)
        elements.append(element)
        pos = skip_space(text, pos)
        if text.startswith(")", pos):
            return tuple(elements), pos + 1
        if not text.startswith(",", pos):
            raise HloSyntaxError("expected ',' or ')' in a tuple shape", pos)
        pos = skip_space(text, pos + 1)


def _scan_layout(text: str, pos: int) -> tuple[str, int]:
    if not text.startswith("{", pos):
        return "", pos
    match = _FLAT_LAYOUT.match(text, pos)
    end = match.end() if match is not None else balanced_end(text, pos)
    return text[pos:end], end


def _parse_dims(text: str, offset: int) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    if not text.strip():
        return (), ()
    dims: list[int] = []
    dynamic: list[bool] = []
    for part in text.split(","):
        match = _DIM.fullmatch(part)
        if match is None:
            raise HloSyntaxError(f"'{part.strip()}' is not a dim size", offset)
        digits = match.group(2)
        if len(digits) > _MAX_DIGITS:
            raise HloSyntaxError(f"dim size has {len(digits)} digits, more than {_MAX_DIGITS}", offset)
        dims.append(-1 if digits == "?" else int(digits))
        dynamic.append(digits == "?" or match.group(1) is not None)
    return tuple(dims), tuple(dynamic) if any(dynamic) else ()
