"""The mesh notation that named shardings and mesh replica groups share.

`mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'x','y':(2)2}`: axes with sizes, an optional device order, and axis
references. A sub-axis `'y':(pre)size` splits its axis of size n into (pre, size, n / (pre * size)), major to minor.
Source: the public XLA parser and `xla/hlo/ir/mesh_and_axis.h` (openxla/xla).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from dtir.importers.hlo.lexing import HloSyntaxError, balanced_end, skip_space, unescape

MAX_RANKS = 131_072
"""Largest number of ranks that is ever expanded into a list; more is a diagnostic, not memory."""

MAX_AXES = 256
"""Most axes of one mesh (and references to them) that are read."""

_AXIS = re.compile(r"""\s*("(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')\s*=\s*(\d{1,18})\s*""", re.DOTALL)
_AXIS_REF = re.compile(
    r"""\s*("(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')\s*(?::\s*\((\d{1,18})\)\s*(\d{1,18}))?\s*""", re.DOTALL
)
_INTS = re.compile(r"\s*(?:-?\d{1,18}\s*(?:,\s*-?\d{1,18}\s*)*+)?")
_IOTA = re.compile(r"\[([\d,\s]*)\]\s*(?:T\(([\d,\s]*)\))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Iota:
    """Device ids `arange(prod(reshape)).reshape(reshape).transpose(perm)`, flattened row-major.

    >>> Iota((2, 4), (1, 0)).expand()
    (0, 4, 1, 5, 2, 6, 3, 7)
    """

    reshape: tuple[int, ...]
    perm: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.reshape)

    @property
    def dims(self) -> tuple[int, ...]:
        """Dim sizes after the transpose."""
        return tuple(self.reshape[axis] for axis in self.perm)

    def expand(self) -> tuple[int, ...]:
        """All ids in order. Callers check `count` against `MAX_RANKS` first."""
        strides = [1] * len(self.reshape)
        for axis in range(len(self.reshape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * self.reshape[axis + 1]
        return strided(self.dims, [strides[axis] for axis in self.perm])

    def text(self) -> str:
        """As HLO prints it after `<=`: `[2,4]T(1,0)`."""
        perm = "" if self.perm == tuple(range(len(self.perm))) else f"T({','.join(map(str, self.perm))})"
        return f"[{','.join(map(str, self.reshape))}]{perm}"


def strided(dims: tuple[int, ...], strides: list[int]) -> tuple[int, ...]:
    """Row-major list of offsets of an array with these dims and strides."""
    ids = [0]
    for dim, stride in zip(dims, strides, strict=True):
        ids = [base + step * stride for base in ids for step in range(dim)]
    return tuple(ids)


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A whole axis, or the part `(pre)size` of one."""

    name: str
    pre: int = 1
    size: int | None = None

    def text(self) -> str:
        """As HLO prints it: `'x'` or `'x':(1)2`."""
        return f"'{self.name}'" if self.size is None else f"'{self.name}':({self.pre}){self.size}"


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes, major to minor; `device_ids` is None for 0, 1, 2, ... in order."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] | Iota | None = None

    @property
    def count(self) -> int:
        return prod(size for _, size in self.axes)

    def axis_size(self, name: str) -> int | None:
        """Size of a named axis, None when there is none of this name."""
        return next((size for axis, size in self.axes if axis == name), None)

    def devices(self) -> tuple[int, ...] | range:
        """Device ids in mesh order. Callers check `count` against `MAX_RANKS` first."""
        if self.device_ids is None:
            return range(self.count)
        return self.device_ids.expand() if isinstance(self.device_ids, Iota) else self.device_ids


@dataclass(frozen=True, slots=True)
class RefinedMesh:
    """A mesh whose axes are cut so finely that given references are whole pieces.

    `dims[i]` is the size of piece i (major to minor over all axes); `pieces[k]` are the piece numbers of reference k.
    """

    dims: tuple[int, ...]
    pieces: tuple[tuple[int, ...], ...]


def refine(mesh: Mesh, refs: tuple[AxisRef, ...], offset: int = 0) -> RefinedMesh:
    """Cut the axes of `mesh` at the bounds of every reference; raises `HloSyntaxError` for references that do not fit.

    >>> refine(Mesh((("a", 8),)), (AxisRef("a", 4, 2), AxisRef("a", 1, 2)))
    RefinedMesh(dims=(2, 2, 2), pieces=((2,), (0,)))
    """
    cuts: dict[str, set[int]] = {name: {1, size} for name, size in mesh.axes}
    for ref in refs:
        size = mesh.axis_size(ref.name)
        if size is None:
            known = ", ".join(f"'{name}'" for name, _ in mesh.axes)
            raise HloSyntaxError(
                f"axis '{ref.name}' is not in the mesh (axes: {known or 'none'})", offset, "hlo.unknown_axis"
            )
        if ref.size is not None:
            if ref.pre < 1 or ref.size < 1 or size % (ref.pre * ref.size):
                message = f"sub-axis '{ref.name}':({ref.pre}){ref.size} does not divide the axis size {size}"
                raise HloSyntaxError(message, offset, "hlo.sub_axis")
            cuts[ref.name] |= {ref.pre, ref.pre * ref.size}
    dims: list[int] = []
    starts: dict[tuple[str, int], int] = {}
    for name, size in mesh.axes:
        bounds = sorted(cuts[name])
        for low, high in pairwise(bounds):
            if high % low:
                raise HloSyntaxError(f"sub-axes of '{name}' overlap at {low} and {high}", offset, "hlo.sub_axis")
            starts[name, low] = len(dims)
            dims.append(high // low)
        starts[name, size] = len(dims)
    pieces: list[tuple[int, ...]] = []
    used: set[int] = set()
    for ref in refs:
        size = mesh.axis_size(ref.name) or 1
        low, high = (1, size) if ref.size is None else (ref.pre, ref.pre * ref.size)
        piece = tuple(range(starts[ref.name, low], starts[ref.name, high])) if high > low else ()
        if used.intersection(piece):
            raise HloSyntaxError(f"axis {ref.text()} is used twice", offset, "hlo.axis_reuse")
        used.update(piece)
        pieces.append(piece)
    return RefinedMesh(tuple(dims), tuple(pieces))


def scan_mesh(text: str, pos: int) -> tuple[Mesh, int]:
    """A `mesh[...]` with its optional `device_ids=(...)` at `pos`, and the offset after it."""
    if not text.startswith("mesh[", pos):
        raise HloSyntaxError("expected mesh[...]", pos)
    open_at = pos + 4
    end = balanced_end(text, open_at)
    axes: list[tuple[str, int]] = []
    at = skip_space(text, open_at + 1)
    while at < end - 1:
        match = _AXIS.match(text, at, end - 1)
        if match is None:
            raise HloSyntaxError("expected 'axis'=size in mesh[...]", at)
        axes.append((unescape(match.group(1)), int(match.group(2))))
        at = match.end()
        if at < end - 1:
            if text[at] != ",":
                raise HloSyntaxError("expected ',' between mesh axes", at)
            at += 1
    if len(axes) > MAX_AXES:
        raise HloSyntaxError(f"a mesh with {len(axes)} axes has more than {MAX_AXES}", open_at)
    if len({name for name, _ in axes}) < len(axes):
        raise HloSyntaxError("a mesh axis name occurs twice", open_at, "hlo.axis_reuse")
    if any(size == 0 for _, size in axes):
        raise HloSyntaxError("a mesh axis has size 0", open_at)
    at = skip_space(text, end)
    comma = skip_space(text, at + 1) if text.startswith(",", at) else at
    if not text.startswith("device_ids=(", comma):
        return Mesh(tuple(axes)), end
    start = comma + len("device_ids=")
    end = balanced_end(text, start)
    device_ids = parse_device_ids(text[start + 1 : end - 1], start + 1)
    mesh = Mesh(tuple(axes), device_ids)
    count = device_ids.count if isinstance(device_ids, Iota) else len(device_ids)
    if count != mesh.count:
        raise HloSyntaxError(f"device_ids lists {count} devices, the mesh has {mesh.count}", start, "hlo.device_ids")
    return mesh, end


def parse_device_ids(text: str, offset: int) -> tuple[int, ...] | Iota:
    """The inside of `device_ids=(...)`: a list of ids, or an iota `[4,2]T(1,0)`."""
    stripped = text.strip()
    if stripped.startswith("["):
        iota, end = scan_iota(stripped, 0)
        if end != len(stripped):
            raise HloSyntaxError("unexpected text after the device iota", offset + end)
        return iota
    if "(" in stripped:
        raise HloSyntaxError("expected device ids", offset)
    ids = parse_ints(text, offset)
    if len(set(ids)) < len(ids):
        raise HloSyntaxError("a device id occurs twice", offset, "hlo.device_ids")
    return ids


def scan_iota(text: str, pos: int) -> tuple[Iota, int]:
    """`[reshape]T(perm)` at `pos`, and the offset after it."""
    match = _IOTA.match(text, pos)
    if match is None:
        raise HloSyntaxError("expected [dims] or [dims]T(permutation)", pos)
    reshape = parse_ints(match.group(1), pos)
    perm = tuple(range(len(reshape))) if match.group(2) is None else parse_ints(match.group(2), pos)
    if not reshape or any(dim < 1 for dim in reshape):
        raise HloSyntaxError("an iota needs positive dims", pos)
    if sorted(perm) != list(range(len(reshape))):
        raise HloSyntaxError(f"T{perm} is not a permutation of {len(reshape)} dims", pos)
    return Iota(reshape, perm), match.end()


def scan_axis_refs(text: str, pos: int) -> tuple[tuple[AxisRef, ...], bool, int]:
    """`{'x','y':(1)2}` at `pos`: the references, whether a `?` (open) is among them, and the offset after it."""
    if not text.startswith("{", pos):
        raise HloSyntaxError("expected {axes}", pos)
    at = skip_space(text, pos + 1)
    refs: list[AxisRef] = []
    is_open = False
    while not text.startswith("}", at):
        match = _AXIS_REF.match(text, at)
        if match is not None:
            name, pre, size = match.groups()
            refs.append(AxisRef(unescape(name)) if pre is None else AxisRef(unescape(name), int(pre), int(size)))
            at = match.end()
        elif text.startswith("?", at):
            is_open = True
            at = skip_space(text, at + 1)
        else:
            raise HloSyntaxError("expected 'axis' or 'axis':(pre)size", at)
        if text.startswith(",", at):
            at = skip_space(text, at + 1)
        elif not text.startswith("}", at):
            raise HloSyntaxError("expected ',' or '}' after an axis", at)
    if len(refs) > MAX_AXES:
        raise HloSyntaxError(f"{len(refs)} axis references are more than {MAX_AXES}", pos)
    return tuple(refs), is_open, at + 1


def parse_ints(text: str, offset: int = 0) -> tuple[int, ...]:
    """A comma-separated list of integers (up to 18 digits each), possibly empty; raises `HloSyntaxError`."""
    if _INTS.fullmatch(text) is None:
        raise HloSyntaxError(f"'{shorten(text)}' is not a list of integers", offset)
    return tuple(map(int, text.split(","))) if text.strip() else ()


def shorten(text: str, limit: int = 40) -> str:
    """`text` on one line, cut to `limit` characters for a message."""
    line = " ".join(text[: limit + 1].split())
    return line if len(text) <= limit else line[:limit] + "..."
