"""What a task computes and moves on one rank, and how long that takes by the roofline.

Where the counts come from, in this order: the work that the program itself states (Transformer semantics), the operator's
own definition (`dtir.ops`), the table of HLO operations (`dtir.cost.hlo_work`). What none of them knows is *unknown*, with
the reason, and never zero.

>>> from dtir.cost.presets import load_preset
>>> rates = load_preset("h100-nvlink-ib").rates
>>> timed(Work(matrix_flops=2 * 8192**3, moved_bytes=3 * 2 * 8192**2, dtype="bf16"), rates).bound
'matrix flops'
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

from dtir.cost.profile import Rates, rate_of
from dtir.cost.sizes import LocalExtents
from dtir.ir.types import dtype_bits

Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True)
class Typed:
    """A local array: extents and element type, and what follows from them.

    Args:
        extents: local extents.
        dtype: element type.
        elements: how many elements there are.
        size_bytes: bytes of them; types without a width (tokens) have none.
    """

    extents: LocalExtents
    dtype: str
    elements: Number
    size_bytes: Number


def typed(extents: LocalExtents, dtype: str) -> Typed:
    """A local array."""
    count = math.prod(extents)
    bits = dtype_bits(dtype) or 0
    return Typed(extents, dtype, count, count * (bits // 8) if bits % 8 == 0 else count * bits / 8)


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one execution on one rank.

    Args:
        matrix_flops: of matrix products.
        vector_flops: of everything else.
        moved_bytes: read and written in memory; None: not known.
        dtype: element type that decides the rates.
        source: where the counts come from.
        free: nothing is done at run time (a new view, a constant, an annotation).
        unknown: why the counts are not known; empty where they are.
        notes: what the counts leave open.
    """

    matrix_flops: Number = 0
    vector_flops: Number = 0
    moved_bytes: Number | None = 0
    dtype: str = "f32"
    source: str = ""
    free: bool = False
    unknown: str = ""
    notes: tuple[str, ...] = ()

    @property
    def flops(self) -> Number:
        """All floating point operations."""
        return self.matrix_flops + self.vector_flops


FREE = Work(free=True, source="no work at run time")


def unknown(reason: str) -> Work:
    """Work that nobody knows."""
    return Work(moved_bytes=None, unknown=reason)


@dataclass(frozen=True, slots=True)
class Timed:
    """Planned time of local work.

    Args:
        seconds: of one execution; None when it is not known.
        bound: what decides it: ``matrix flops``, ``vector flops``, ``memory``, ``start``, ``nothing``.
        reason: why it is not known.
    """

    seconds: float | None
    bound: str = ""
    reason: str = ""
    notes: tuple[str, ...] = field(default=())


def timed(work: Work, rates: Rates) -> Timed:
    """The roofline: the slowest of flops and memory traffic, which go on at once, after the start of the task.

    Source: Williams, Waterman, Patterson, "Roofline", 2009, doi 10.1145/1498765.1498785.
    """
    if work.unknown:
        return Timed(None, reason=work.unknown)
    if work.free:
        return Timed(0.0, "nothing")
    parts: list[tuple[float, str]] = []
    for flops, table, name in (
        (work.matrix_flops, rates.matrix_flops_per_s, "matrix flops"),
        (work.vector_flops, rates.vector_flops_per_s, "vector flops"),
    ):
        if flops:
            rate = rate_of(table, work.dtype)
            if rate is None:
                return Timed(None, reason=f"the profile has no rate of {name} for {work.dtype}")
            parts.append((float(flops) / rate, name))
    notes = work.notes
    if work.moved_bytes and rates.memory_bytes_per_s is not None:
        parts.append((float(work.moved_bytes) / rates.memory_bytes_per_s, "memory"))
    elif work.moved_bytes:
        if not parts:
            return Timed(None, reason="the profile has no memory bandwidth")
        notes = (*notes, "memory traffic is left out: the profile has no memory bandwidth")
    seconds, bound = max(parts, default=(0.0, "start"))
    if seconds < rates.start_s:
        bound = "start"
    return Timed(rates.start_s + seconds, bound, notes=notes)
