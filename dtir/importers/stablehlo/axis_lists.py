"""Algebra of axis lists: parts of axes, what overlaps, what is a suffix of what.

A reference covers positions ``pre`` up to ``pre * size`` of its axis; the whole axis covers 1 up to its size.

>>> mesh = SdyMesh((("x", 8), ("y", 2)))
>>> without_suffix((AxisRef("y"), AxisRef("x")), (AxisRef("x", 2, 4),), mesh)
(AxisRef(name='y', pre=1, size=None), AxisRef(name='x', pre=1, size=2))
"""

from __future__ import annotations

from collections.abc import Sequence

from dtir.importers.hlo.meshes import AxisRef
from dtir.importers.stablehlo.sdy import SdyMesh


def span(ref: AxisRef, mesh: SdyMesh) -> tuple[int, int]:
    """Where a reference begins and ends on its axis."""
    return (1, mesh.size_of(ref)) if ref.size is None else (ref.pre, ref.pre * ref.size)


def made(name: str, start: int, end: int, mesh: SdyMesh) -> AxisRef:
    """The reference to a part of an axis; to the axis itself where the part is all of it."""
    whole = mesh.size_of(AxisRef(name))
    return AxisRef(name) if (start, end) == (1, whole) else AxisRef(name, start, end // start)


def overlap(left: AxisRef, right: AxisRef, mesh: SdyMesh) -> bool:
    """Whether two references share a part of an axis."""
    if left.name != right.name:
        return False
    (first, last), (start, end) = span(left, mesh), span(right, mesh)
    return first < end and start < last


def first_overlap(left: Sequence[AxisRef], right: Sequence[AxisRef], mesh: SdyMesh) -> AxisRef | None:
    """The first reference on the left that overlaps one on the right."""
    return next((ref for ref in left if any(overlap(ref, other, mesh) for other in right)), None)


def joined(refs: Sequence[AxisRef], mesh: SdyMesh) -> tuple[AxisRef, ...]:
    """A list whose neighbours that follow each other on one axis are one reference."""
    found: list[AxisRef] = []
    for ref in refs:
        if found and found[-1].name == ref.name and span(found[-1], mesh)[1] == span(ref, mesh)[0]:
            found[-1] = made(ref.name, span(found[-1], mesh)[0], span(ref, mesh)[1], mesh)
        else:
            found.append(ref)
    return tuple(found)


def without_suffix(refs: Sequence[AxisRef], suffix: Sequence[AxisRef], mesh: SdyMesh) -> tuple[AxisRef, ...] | AxisRef:
    """A list without its last references; the one that is not at the end where the suffix is none."""
    rest = list(refs)
    for ref in reversed(suffix):
        if not rest or rest[-1].name != ref.name:
            return ref
        (first, last), (start, end) = span(rest[-1], mesh), span(ref, mesh)
        if end != last or start < first or start % first:
            return ref
        rest.pop()
        if start > first:
            rest.append(made(ref.name, first, start, mesh))
    return tuple(rest)


def canonical(refs: Sequence[AxisRef], mesh: SdyMesh) -> tuple[AxisRef, ...]:
    """A set of references in the order of the mesh, neighbours joined: equal sets give equal lists."""
    order = {name: place for place, (name, _) in enumerate(mesh.axes)}
    return joined(sorted(refs, key=lambda ref: (order.get(ref.name, -1), span(ref, mesh)[0])), mesh)


def shards(refs: Sequence[AxisRef], mesh: SdyMesh) -> int:
    """Into how many parts the axes divide a dim."""
    count = 1
    for ref in refs:
        count *= mesh.size_of(ref)
    return count


def text(refs: Sequence[AxisRef]) -> str:
    """As Shardy prints a list: ``["x", "y":(1)2]``."""
    return "[" + ", ".join(ref_text(ref) for ref in refs) + "]"


def ref_text(ref: AxisRef) -> str:
    """As Shardy prints a reference."""
    return f'"{ref.name}"' if ref.size is None else f'"{ref.name}":({ref.pre}){ref.size}'
