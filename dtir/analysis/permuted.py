"""Permutes that change a layout: every rank gets the block that the new layout gives it.

>>> from dtir.ir.mesh import LogicalMesh, MeshAxis
>>> from dtir.analysis.fibres import factor_mesh
>>> space, _ = factor_mesh(LogicalMesh("m", (MeshAxis("x", 2), MeshAxis("y", 2))), [])
>>> turned = ((0, 0), (1, 2), (2, 1), (3, 3))
>>> realises(turned, State((("x", "y"),)), State((("y", "x"),)), space, 4)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtir.analysis.abstract import Abstract, Declared, Surroundings, given
from dtir.analysis.fibres import Space
from dtir.analysis.local import Step
from dtir.analysis.resharding import transfer_step
from dtir.analysis.states import State


def permute_step(
    value: Abstract, declared: Declared, around: Surroundings, *, pairs: Sequence[tuple[int, int]]
) -> Step:
    """Judge a permute: the value is the same elsewhere, or it has the layout that its blocks are moved into."""
    step = transfer_step(value, declared, around)
    ranks = around.space.mesh.size
    if step.deviations and realises(pairs, value.state, declared.state, around.space, ranks):
        return Step((replace(given(declared, around), scale=value.scale, weighted=value.weighted),))
    return step


def realises(pairs: Sequence[tuple[int, int]], before: State, after: State, space: Space, ranks: int) -> bool:
    """Whether a permute moves the blocks of one layout to where another one has them.

    Every rank receives once, from a rank whose block is the one that the new layout gives it; nothing is pending, per rank or
    confined, and shards are of equal size.
    """
    for state in (before, after):
        if state.partial or state.varying or state.at or state.sizes:
            return False
    if len(pairs) != ranks or len({target for _, target in pairs}) != ranks or len(before.dims) != len(after.dims):
        return False
    if any(space.count(one) != space.count(other) for one, other in zip(before.dims, after.dims, strict=True)):
        return False
    return all(
        space.position(source, one) == space.position(target, other)
        for source, target in pairs
        for one, other in zip(before.dims, after.dims, strict=True)
    )
