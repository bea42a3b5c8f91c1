"""Is the declared layout of a value well defined by itself: sizes that divide, axes that are named, ghosts that fit."""

from __future__ import annotations

from dtir.analysis.abstract import Declared, Surroundings
from dtir.analysis.blocks import padding_of
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.divisibility import bound
from dtir.analysis.states import unnamed_axes
from dtir.ir.expr import ScalarExpr, Symbol
from dtir.ir.sharding import ShardingSpec


def layout_deviations(sharding: ShardingSpec, declared: Declared, around: Surroundings) -> tuple[Deviation, ...]:
    """Where a layout contradicts itself."""
    found: list[Deviation] = []
    if missing := unnamed_axes(sharding, around.space):
        found.append(Deviation(Kind.INCOMPLETE, missing))
    for dim in range(len(declared.shape)):
        uneven = _dim_deviation(dim, declared, around)
        if uneven is not None:
            found.append(uneven)
    if not any(item.kind in SIZELESS for item in found):
        found += _narrow(declared, around)
    return tuple(found)


SIZELESS = frozenset({Kind.UNEVEN, Kind.DIVISIBILITY})
"""Deviations that leave a value without well-defined shard sizes."""


def _dim_deviation(dim: int, declared: Declared, around: Surroundings) -> Deviation | None:
    axes, sizes, extent = declared.state.dims[dim], declared.state.size_of(dim), declared.shape[dim]
    count = around.space.count(axes)
    if sizes is not None:
        number = around.number(extent)
        if len(sizes) != count:
            return Deviation(Kind.UNEVEN, axes, None, None, (dim,), str(len(sizes)), str(count), "number of sizes")
        if number is not None and sum(sizes) < number:
            return Deviation(Kind.UNEVEN, axes, None, None, (dim,), str(sum(sizes)), str(number), "sum of sizes")
        return None
    if not axes:
        return None
    if isinstance(extent, (Symbol, ScalarExpr)):
        return _symbolic(dim, axes, count, declared, around)
    if isinstance(extent, float) or extent % count:
        return Deviation(Kind.UNEVEN, axes, None, None, (dim,), str(extent), str(count))
    return None


def _symbolic(
    dim: int, axes: tuple[str, ...], count: int, declared: Declared, around: Surroundings
) -> Deviation | None:
    extent = declared.shape[dim]
    number = bound(extent, around.bindings)
    if not around.facts.divides(count, extent):
        note = "assumed" if isinstance(number, int) and number % count == 0 else "unknown"
        shown = str(number) if isinstance(number, (int, float)) else ""
        return Deviation(Kind.DIVISIBILITY, axes, None, None, (dim,), shown, str(count), note)
    if isinstance(number, (int, float)) and number % count:
        return Deviation(Kind.DIVISIBILITY, axes, None, None, (dim,), str(number), str(count), "bound")
    return None


def _narrow(declared: Declared, around: Surroundings) -> list[Deviation]:
    """Ghost layers wider than what the neighbour has to give."""
    for dim, (below, above) in enumerate(declared.ghosts):
        axes, sizes = declared.state.dims[dim], declared.state.size_of(dim)
        number, count = around.number(declared.shape[dim]), around.space.count(axes)
        if not axes or number is None:
            continue
        if sizes is not None:
            padding, least = padding_of(number, sizes), min(sizes, default=0)
            least = max(0, min(least, sizes[-1] - padding)) if sizes else 0
        else:
            least = number // count
        if least < max(below, above):
            return [Deviation(Kind.NARROW_SHARD, axes, None, None, (dim,), str(least), str(max(below, above)))]
    return []
