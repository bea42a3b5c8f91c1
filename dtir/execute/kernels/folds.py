"""Launches of reductions over the members of a group that lie on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from dtir.execute.dtypes import Array
from dtir.execute.kernels.launches import TABLE, WORD_BYTES, Geometry, Launch, integer, numbers, table
from dtir.ir.reductions import ReductionKind

ELEMENTS: Mapping[str, int] = MappingProxyType(
    {
        "f32": 4, "f64": 8, "f16": 2, "bf16": 2,
        "i8": 1, "i16": 2, "i32": 4, "i64": 8,
        "u8": 1, "u16": 2, "u32": 4, "u64": 8,
    }
)  # fmt: skip
"""Element types of the kernels, and their bytes."""

FOLDS: Mapping[ReductionKind, str] = MappingProxyType(
    {
        ReductionKind.SUM: "Sum",
        ReductionKind.PRODUCT: "Product",
        ReductionKind.MAX: "Max",
        ReductionKind.MIN: "Min",
        ReductionKind.AVERAGE: "Average",
        ReductionKind.AND: "And",
        ReductionKind.OR: "Or",
        ReductionKind.XOR: "Xor",
    }
)
"""Reductions of the kernels."""

_UNROLL: Mapping[int, int] = MappingProxyType({2: 4, 4: 2, 8: 1})
"""Members for which everything is unrolled, and vectors of each in flight a thread: 128 bytes in all."""

_BITWISE = (ReductionKind.AND, ReductionKind.OR, ReductionKind.XOR)


def can_fold(element: str, kind: ReductionKind) -> bool:
    """Whether there is a kernel for it."""
    return element in ELEMENTS and kind in FOLDS and not (kind in _BITWISE and element.endswith(("f16", "f32", "f64")))


def fold(
    members: Sequence[int],
    results: Sequence[int],
    element: str,
    kind: ReductionKind,
    count: int,
    geometry: Geometry,
    *,
    result: str | None = None,
) -> Launch:
    """The reduction of `count` elements of every member, written to every result.

    Args:
        members: addresses, in the order of the fold; beyond `TABLE` at equal distances.
        results: addresses; each may be that of a member (the reduction is then in place) or apart from all of them.
        element: element type, of `ELEMENTS`.
        result: element type of the results, where it is wider: ``f32`` for partial sums of 16-bit floats.

    Raises:
        ValueError: there is no such kernel, or more addresses than a launch takes.
    """
    if not can_fold(element, kind) or not members or not results:
        raise ValueError(f"no kernel folds {len(members)} arrays of {element} by {kind.value} into {len(results)}")
    out = result or element
    size, out_size = ELEMENTS[element], ELEMENTS[out]
    span = _span(members, results, size, out_size, count)
    in_place = bool(set(members) & set(results))
    types = f"{element}, {FOLDS[kind]}<{element}>, {out}"
    alias = "true" if in_place else "false"
    reads = tuple((address, count * size) for address in members)
    writes = tuple((address, count * out_size) for address in results)
    work = max(span[1], count - span[1] * (WORD_BYTES // size))
    k, ko = len(members), len(results)
    if k in _UNROLL and ko in (1, k):
        unroll = _UNROLL[k]
        return Launch(
            f"fold_fixed<{types}, {k}, {ko}, {unroll}, {alias}>",
            (geometry.grid_x(work, unroll), 1, 1),
            geometry.threads,
            (table(members, k), table(results, ko), numbers(*span)),
            reads,
            writes,
        )
    where_in, source = _listed(members)
    where_out, target = _listed(results)
    return Launch(
        f"fold_any<{types}, {where_in}, {where_out}, {alias}>",
        (geometry.grid_x(work), 1, 1),
        geometry.threads,
        (source, integer(k), target, integer(ko), numbers(*span)),
        reads,
        writes,
    )


def _listed(addresses: Sequence[int]) -> tuple[str, Array]:
    """The C++ type in which addresses are handed over, one by one or as the first and the distance; and the parameter."""
    if len(addresses) <= TABLE:
        return f"Listed<{TABLE}>", table(addresses)
    step = addresses[1] - addresses[0]
    if any(later - earlier != step for earlier, later in pairwise(addresses)):
        raise ValueError(f"{len(addresses)} arrays at unequal distances: a launch takes at most {TABLE} of those")
    return "Strided", numbers(addresses[0], step % 2**64)


def _span(members: Sequence[int], results: Sequence[int], size: int, out_size: int, count: int) -> tuple[int, int, int]:
    """Elements before the first that all arrays have at a multiple of 16 bytes, 16-byte vectors from there on, elements.

    All elements come before it where there is none: then each is done on its own.
    """
    lanes = WORD_BYTES // size
    for head in range(min(lanes, count)):
        fits = all((address + head * size) % WORD_BYTES == 0 for address in members)
        if fits and all((address + head * out_size) % WORD_BYTES == 0 for address in results):
            return head, (count - head) // lanes, count
    return count, 0, count
