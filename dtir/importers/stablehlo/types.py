"""MLIR types as shapes of arrays and tuples.

>>> table = Types({"!mat": "tensor<4x?xbf16>"})
>>> [shape.text() for shape in table.of("!mat, tuple<tensor<i1>, !stablehlo.token>")]
['bf16[4,?]', '(pred[], token[])']

Element types get the names that HLO has for them: ``i1`` is pred, ``i32`` s32, ``ui8`` u8, ``complex<f32>`` c64. A type that
stands for no array (an option, a memory reference of another dialect) is opaque: it is kept as a value without data.
Source: the public MLIR language reference and StableHLO specification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dtir.importers.hlo.shapes import DTYPE_BITS, ArrayShape, Shape, TupleShape
from dtir.importers.stablehlo.lists import closing, split

MAX_DEPTH = 30
"""Deepest nesting of types in types that is read."""

_TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)\s*x\s*)*)([^<>,x][^<>,]*|complex<\w+>)\s*>", re.ASCII)
_DIMS = re.compile(r"(\d+|\?)\s*x\s*")
_INTEGER = re.compile(r"(s|u)?i(\d+)", re.ASCII)
_FLOATS = {"tf32": "f32", "f80": "opaque", "f128": "opaque", "index": "s64", "none": "token"}
_BOUNDS = re.compile(r"bounds<([^<>]*)>")
OPAQUE = ArrayShape("opaque", ())
"""A value of a type that stands for no array."""

MALFORMED = ArrayShape("opaque", (), (), "malformed")
"""What text that is no type gives; whoever meets it reports it."""

_OTHER_ELEMENTS = re.compile(r"!.*|f\d+E\w+|f80|f128|[su]?i\d+|complex<\w+>", re.ASCII | re.DOTALL)
_NO_ARRAYS = ("!", "memref<", "vector<", "none", "()", "(")


def element(text: str) -> str:
    """HLO's name of an element type; ``opaque`` for one that it has no name for.

    >>> element("i1"), element("ui8"), element("f8E4M3FN"), element("complex<f64>"), element("si4")
    ('pred', 'u8', 'f8e4m3fn', 'c128', 's4')
    """
    text = text.strip()
    if text == "i1":
        return "pred"
    match = _INTEGER.fullmatch(text)
    if match is not None:
        name = f"{'u' if match.group(1) == 'u' else 's'}{match.group(2)}"
    elif text.startswith("complex<"):
        name = {"f32": "c64", "f64": "c128"}.get(text[8:-1].strip(), "opaque")
    else:
        name = _FLOATS.get(text) or text.lower()
    return name if name in DTYPE_BITS else "opaque"


class Types:
    """The types of one part; equal texts give the same objects."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._lists: dict[str, tuple[Shape, ...]] = {}
        self._single: dict[str, Shape] = {}

    def of(self, text: str) -> tuple[Shape, ...]:
        """The types in a comma-separated list."""
        found = self._lists.get(text)
        if found is None:
            found = self._lists[text] = tuple(self.one(part) for part in split(text))
        return found

    def one(self, text: str, depth: int = 0) -> Shape:
        """One type."""
        found = self._single.get(text)
        if found is None:
            found = self._single[text] = self._parse(text.strip(), depth)
        return found

    def _parse(self, text: str, depth: int) -> Shape:
        match = _TENSOR.fullmatch(text)
        if match is not None and match.group(2)[0] == "*":
            return OPAQUE  # a tensor of any rank
        if match is not None:
            dims = tuple(-1 if dim == "?" else _size(dim) for dim in _DIMS.findall(match.group(1)))
            free = tuple(dim < 0 for dim in dims)
            return _array(match.group(2).strip(), dims, free)
        if depth > MAX_DEPTH:
            return OPAQUE
        if text in self._aliases:
            return self.one(self._aliases[text], depth + 1)
        if text.startswith("tensor<"):
            return self._encoded(text, depth)
        if text.startswith("tuple<"):
            return TupleShape(tuple(self.one(part, depth + 1) for part in split(text[6:-1])))
        if text.startswith("!mpmd.mesh_tensor<"):
            parts = split(text[len("!mpmd.mesh_tensor<") : -1])
            return self.one(parts[1], depth + 1) if len(parts) > 1 else OPAQUE
        if text in ("!stablehlo.token", "!mhlo.token", "none"):
            return ArrayShape("token", ())
        if text.startswith(_NO_ARRAYS):
            return OPAQUE
        return _array(text, (), ())

    def _encoded(self, text: str, depth: int) -> Shape:
        """A tensor with an encoding (``#stablehlo.bounds<?, 4>``), a quantised one, or one without a rank."""
        if not text.endswith(">") or closing(text, 6) != len(text):
            return MALFORMED
        parts = split(text[7:-1])
        head = parts[0] if parts else ""
        if head.startswith("*"):
            return OPAQUE
        dims: list[int] = []
        pos = 0
        while (match := _DIMS.match(head, pos)) is not None:
            dims.append(-1 if match.group(1) == "?" else _size(match.group(1)))
            pos = match.end()
        kind = head[pos:]
        if kind.startswith("!quant.uniform<"):
            kind = re.split(r"[:<(,]", kind[len("!quant.uniform<") :], maxsplit=1)[0]
        elif kind in self._aliases:
            kind = self._aliases[kind]
        free = [dim < 0 for dim in dims]
        bounds = _BOUNDS.search(",".join(parts[1:]))
        if bounds is not None:
            stated = [part.strip() for part in bounds.group(1).split(",")]
            if len(stated) == len(dims):
                dims = [_size(bound) if bound.isdigit() else dim for dim, bound in zip(dims, stated, strict=True)]
                free = [was or bound.isdigit() for was, bound in zip(free, stated, strict=True)]
        return _array(kind.strip(), tuple(dims), tuple(free))


def _array(kind: str, dims: tuple[int, ...], free: tuple[bool, ...]) -> ArrayShape:
    """An array of elements of a type; elements that HLO has no name for hold no data."""
    found = element(kind)
    if found == "opaque" and _OTHER_ELEMENTS.fullmatch(kind) is None:
        return MALFORMED
    return ArrayShape(found, dims, free if any(free) else ())


def _size(digits: str) -> int:
    # More digits than any size has: a number that nothing is made of.
    return int(digits) if len(digits) <= 19 else -1


def mesh_of(text: str, aliases: Mapping[str, str]) -> str | None:
    """The mesh that an MPMD type names: ``!mpmd.mesh_tensor<"m1", tensor<4xf32>>`` gives ``m1``."""
    for _ in range(MAX_DEPTH):
        text = text.strip()
        if text.startswith("!mpmd.mesh_tensor<"):
            return split(text[len("!mpmd.mesh_tensor<") : -1])[0].strip().strip('"')
        if text not in aliases:
            return None
        text = aliases[text]
    return None


def signature(text: str) -> tuple[str | None, str]:
    """Operand and result types of what follows the colon; no operand types where only one list is stated.

    >>> signature("(tensor<2xf32>, i1) -> (tensor<2xf32>)"), signature("tensor<i1>, tensor<2xf32>")
    (('tensor<2xf32>, i1', 'tensor<2xf32>'), (None, 'tensor<i1>, tensor<2xf32>'))
    """
    text = text.strip()
    if not text.startswith("("):
        operands, arrow, results = text.partition(" -> ")  # as CHLO prints one operand
        return (operands.strip(), _unwrapped(results.strip())) if arrow else (None, text)
    end = closing(text, 0)
    operands, rest = text[1 : end - 1], text[end:].lstrip()
    if not rest.startswith("->"):
        return None, text
    return operands.strip(), _unwrapped(rest[2:].strip())


def _unwrapped(results: str) -> str:
    if results.startswith("(") and closing(results, 0) == len(results):
        results = results[1:-1]
    return results.strip()
