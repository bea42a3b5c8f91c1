"""Reshapes of split values against the elements themselves: a layout that is kept is the one that the blocks have."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.analysis.abstract import Surroundings
from dtir.analysis.blocks import box_of
from dtir.analysis.divisibility import Facts
from dtir.analysis.fibres import Space, factor_mesh
from dtir.analysis.regroup import Kept, reshaped
from dtir.analysis.states import State
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ops.opdef import OpCall, Regroup
from dtir.ops.registry import require_op

MESH = LogicalMesh("m", (MeshAxis("a", 2), MeshAxis("b", 3)))
SPACE, _ = factor_mesh(MESH, [])
AROUND = Surroundings(SPACE, Facts(), {}, False)


def block(array: np.ndarray, state: State, space: Space, rank: int) -> np.ndarray:
    box = box_of(array.shape, state, space, rank)
    return array[tuple(slice(start, stop) for start, stop in box)]


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[tuple[int, ...], State, tuple[int, ...]]:
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 3, 6]), min_size=1, max_size=4))

    def cut() -> tuple[int, ...]:
        shape = [1]
        for factor in factors:
            if draw(st.booleans()):
                shape.append(factor)
            else:
                shape[-1] *= factor
        return tuple(shape)

    source, target = cut(), cut()
    dims: list[list[str]] = [[] for _ in source]
    for axis in draw(st.permutations(["a", "b"])):
        fits = [dim for dim, extent in enumerate(source) if extent % (SPACE.count(dims[dim]) * SPACE.sizes[axis]) == 0]
        if fits and draw(st.integers(0, 3)):
            dims[draw(st.sampled_from(fits))].append(axis)
    return source, State(tuple(map(tuple, dims))), target


@settings(max_examples=400)
@given(reshapes())
def test_a_kept_layout_is_that_of_the_blocks(drawn: tuple[tuple[int, ...], State, tuple[int, ...]]) -> None:
    source, state, target = drawn
    rule = require_op("reshape").labels(OpCall((source,), (target,)))
    assert isinstance(rule, Regroup)
    found = reshaped(rule, source, state, target, AROUND)
    if not isinstance(found, Kept):
        assert state.split
        return
    result = State(found.dims)
    assert set(result.split) == set(state.split)
    whole = np.arange(math.prod(source)).reshape(source)
    for rank in range(MESH.size):
        before = block(whole, state, SPACE, rank).ravel()
        after = block(whole.reshape(target), result, SPACE, rank).ravel()
        assert np.array_equal(before, after)


def test_an_inner_split_is_torn() -> None:
    rule = require_op("reshape").labels(OpCall(((2, 6),), ((12,),)))
    assert isinstance(rule, Regroup)
    found = reshaped(rule, (2, 6), State(((), ("b",))), (12,), AROUND)
    assert not isinstance(found, Kept)
    assert (found.axes, found.dim, found.leads) == (("b",), 1, False)
