"""Operators that know where they run: sources (positions, random numbers, constants), slices and masks by coordinate,
expert bodies and stencils.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import MappingProxyType

from dtir.ops.arithmetic import Arithmetic, Array, Place
from dtir.ops.contract import contract
from dtir.ops.elementwise import random_integers
from dtir.ops.opdef import (
    Fold,
    LabelRule,
    Labels,
    MaskAxes,
    OpCall,
    OpClass,
    OpDef,
    OpError,
    Reach,
    SliceAxes,
    SourceKind,
    Transition,
    elements,
    no_signs,
)
from dtir.ops.parameters import constant, dim_of, integers, names
from dtir.ops.rules import degree, elementwise, named_dims, scale_free
from dtir.ops.shapes import local_extents


def _made_labels(call: OpCall) -> LabelRule:
    return Labels((), tuple(named_dims(len(shape)) for shape in call.results))


def _positions(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del operands
    shape = local_extents(call.results[0])
    if not shape:
        return (arithmetic.xp.zeros((), dtype=arithmetic.xp.int64),)
    dim = dim_of(call, len(shape), -1)
    start = place.offsets[0][dim] if place.offsets and global_offset(call) else 0
    counted = arithmetic.xp.arange(start, start + shape[dim])
    return (arithmetic.xp.broadcast_to(counted.reshape([-1 if k == dim else 1 for k in range(len(shape))]), shape),)


def global_offset(call: OpCall) -> bool:
    """True when positions count from the block's first global index (``offset: global``), not from 0 on every rank."""
    return call.attributes.get("offset") == "global"


def _random(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del operands
    drawn = random_integers(call, place, 1000, local_extents(call.results[0]))
    return (arithmetic.settle(arithmetic.xp.asarray(drawn)),)


def _constant(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del operands, place
    value = arithmetic.number(constant(call, "value")) if "value" in call.attributes else 0
    return (arithmetic.xp.full(local_extents(call.results[0]), value),)


# -- slices and masks -------------------------------------------------------------------------------------------------


def _axes(call: OpCall) -> tuple[str, ...]:
    given = call.attributes.get("axes", call.attributes.get("axis"))
    if given is None:
        raise OpError("parameter axis is missing")
    return names(given, "axis")


def _shard_transition(call: OpCall) -> Transition | None:
    return SliceAxes(_axes(call), dim_of(call, len(call.operands[0])))


def _mask_transition(call: OpCall) -> Transition | None:
    return MaskAxes(_axes(call))


def _position_on(call: OpCall, place: Place) -> tuple[int, int]:
    """The index of a rank along the axes, the first most significant, and their number of ranks."""
    index, count = 0, 1
    for axis in _axes(call):
        if axis not in place.sizes:
            raise OpError(f"the mesh has no axis {axis!r}")
        index = index * place.sizes[axis] + place.coordinates[axis]
        count *= place.sizes[axis]
    return index, count


def _shard(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del arithmetic
    (array,) = operands
    if place.rank is None:
        return (array,)
    index, count = _position_on(call, place)
    dim = dim_of(call, array.ndim)
    size = -(-array.shape[dim] // count)
    return (array[(slice(None),) * dim + (slice(index * size, (index + 1) * size),)],)


def _mask(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    (array,) = operands
    if place.rank is None or _position_on(call, place)[0] == 0:
        return (array,)
    return (arithmetic.xp.zeros_like(array),)


def _same(call: OpCall) -> LabelRule:
    return elementwise(OpCall(call.operands, call.results, call.attributes))


# -- experts -----------------------------------------------------------------------------------------------------------


def _expert_labels(call: OpCall) -> LabelRule:
    tokens, weight = call.operands
    if not tokens or not 1 <= len(weight) <= 3:
        raise OpError("moe_expert takes tokens [t, h] and weights [e], [e, h] or [e, h, o]")
    labels = named_dims(len(tokens))
    result = (*labels[:-1], "o") if len(weight) == 3 else labels
    rest = (labels[-1], "o")[: len(weight) - 1]
    folds = {labels[-1]: Fold.SUM} if len(weight) == 3 else {}
    # Which expert a token needs is known only by its route: with undivided tokens, all experts must be there.
    return Labels((labels, ("expert", *rest)), (result,), MappingProxyType(folds), frozenset({"expert"}))


def _expert(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    xp, (tokens, weight) = arithmetic.xp, operands
    route = integers(call.attributes.get("route"), "route")
    if len(route) != tokens.shape[0] or any(not 0 <= expert < weight.shape[0] for expert in route):
        raise OpError(f"route must give each of {tokens.shape[0]} tokens one of {weight.shape[0]} experts")
    own = xp.take(weight, xp.asarray(route, dtype=xp.int64), axis=0)
    if weight.ndim == 3:
        return (contract(arithmetic, (tokens, own), ("th", "tho"), "to"),)
    own = own.reshape((-1, *([1] * (tokens.ndim - weight.ndim)), *own.shape[1:])) if weight.ndim < tokens.ndim else own
    return (arithmetic.settle(tokens * own),)


def _expert_flops(call: OpCall) -> int | float:
    weight = call.operands[1]
    return 2 * elements(call.operands[0]) * elements(weight[2:]) if len(weight) == 3 else elements(call.results[0])


# -- stencils ----------------------------------------------------------------------------------------------------------


def stencil_reach(call: OpCall) -> Reach | None:
    """Radius along every dim (``radius`` times ``steps``), diagonal for ``points: box``."""
    rank = len(call.operands[0])
    dims = set(integers(call.attributes.get("dims", list(range(rank))), "dims"))
    radius = integers(call.attributes.get("radius", 1), "radius")[0]
    if not 0 <= radius <= _MOST_RADIUS:
        raise OpError(f"radius {radius} must be between 0 and {_MOST_RADIUS}")
    return Reach(tuple(radius if dim in dims else 0 for dim in range(rank)), call.attributes.get("points") == "box")


_MOST_RADIUS = 64
_MOST_OFFSETS = 4096


def stencil_offsets(reach: Reach) -> tuple[tuple[int, ...], ...]:
    """The offsets that a stencil reads: a box, or a star (at most one offset differs from 0).

    Raises:
        OpError: more than 4,096 of them.
    """
    count = math.prod(2 * radius + 1 for radius in reach.radius) if reach.diagonal else 2 * sum(reach.radius) + 1
    if count > _MOST_OFFSETS:
        raise OpError(f"the stencil reads {count} elements for each, more than {_MOST_OFFSETS}")
    if reach.diagonal:
        return tuple(itertools.product(*(range(-radius, radius + 1) for radius in reach.radius)))
    star = {
        tuple(step if dim == along else 0 for dim in range(len(reach.radius)))
        for along, radius in enumerate(reach.radius)
        for step in range(-radius, radius + 1)
    }
    return tuple(sorted(star))


def _stencil(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    """The operand comes with a frame as wide as the reach; weights 1, 2, 3, ... in the order of the offsets, all different."""
    del place
    reach = stencil_reach(call)
    assert reach is not None
    (framed,) = operands
    size = tuple(extent - 2 * radius for extent, radius in zip(framed.shape, reach.radius, strict=True))
    total = None
    for weight, offset in enumerate(stencil_offsets(reach), start=1):
        window = tuple(
            slice(radius + step, radius + step + extent)
            for radius, step, extent in zip(reach.radius, offset, size, strict=True)
        )
        term = weight * framed[window]
        total = term if total is None else arithmetic.settle(total + term)
    return (arithmetic.settle(total),)


def _stencil_flops(call: OpCall) -> int | float:
    reach = stencil_reach(call)
    assert reach is not None
    return 2 * len(stencil_offsets(reach)) * elements(call.results[0])


def _nothing(call: OpCall) -> int | float:
    del call
    return 0


_OPS: tuple[OpDef, ...] = (
    OpDef("positions", "0, 1, 2, ... along a dim", (0, 0), OpClass.SOURCE, _made_labels, scale_free, _positions,
          polynomial=True, source=SourceKind.POSITION, flops=_nothing, parameters=frozenset({"offset", "dim", "dims"})),
    OpDef("iota", "0, 1, 2, ... along a dim", (0, 0), OpClass.SOURCE, _made_labels, scale_free, _positions,
          polynomial=True, source=SourceKind.POSITION, flops=_nothing, parameters=frozenset({"offset", "dim", "dims"})),
    OpDef("rand", "random numbers, by a key that holds the coordinates on key_axes", (0, 0), OpClass.SOURCE, _made_labels,
          scale_free, _random, polynomial=True, source=SourceKind.RANDOM, parameters=frozenset({"key_axes"})),
    OpDef("constant", "one value everywhere", (0, 0), OpClass.SOURCE, _made_labels, scale_free, _constant, polynomial=True,
          source=SourceKind.CONSTANT, flops=_nothing, parameters=frozenset({"value"})),
    OpDef("shard", "the rank's own block along a dim", (1, 1), OpClass.LINEAR, _same, degree(1), _shard, polynomial=True,
          keeps_zero=True, transition=_shard_transition, flops=_nothing,
          parameters=frozenset({"axis", "axes", "dim", "dims"})),
    OpDef("mask", "the value on coordinate 0, zeros on the others", (1, 1), OpClass.LINEAR, _same, degree(1), _mask,
          polynomial=True, keeps_zero=True, transition=_mask_transition, flops=_nothing,
          parameters=frozenset({"axis", "axes"})),
    OpDef("moe_expert", "each token times the weights of its expert", (2, 2), OpClass.MULTILINEAR, _expert_labels, degree(),
          _expert, polynomial=True, keeps_zero=True, flops=_expert_flops, parameters=frozenset({"route"})),
    OpDef("stencil", "a weighted sum over neighbours, periodic", (1, 1), OpClass.LINEAR, elementwise, degree(1), _stencil, no_signs,
          polynomial=True, reach=stencil_reach, flops=_stencil_flops,
          parameters=frozenset({"radius", "points", "dims"})),
)  # fmt: skip

OPS: tuple[tuple[str, OpDef], ...] = tuple(("core", operator) for operator in _OPS)
