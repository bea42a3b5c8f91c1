"""Ranks, blocks, shares: what is scattered is what is put together again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtir.ir import (
    DistributedValue,
    Lineage,
    LogicalMesh,
    MeshAxis,
    Partial,
    ReductionKind,
    Scale,
    ShardingSpec,
    ShardSizes,
    TensorType,
    ValueId,
    ValueRole,
    all_ranks,
)
from dtir.ops import Field, Floats
from dtir.verify.value.case import CaseValue, case_value
from dtir.verify.value.data import Source
from dtir.verify.value.grid import Grid, even_span, listed_span
from dtir.verify.value.held import assemble, needed_places, replicas

AXES = {"a": 2, "b": 3, "c": 2}
GRID = Grid(tuple(AXES), tuple(AXES.values()))
FOLDS = (ReductionKind.SUM, ReductionKind.PRODUCT, ReductionKind.AVERAGE, ReductionKind.MAX, ReductionKind.MIN)


@st.composite
def values(draw: st.DrawFn) -> CaseValue:
    """A value with every axis split, replicated or pending; even, uneven or padded shards."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=2)))
    dims: list[list[str]] = [[] for _ in shape]
    pending: list[str] = []
    for axis in draw(st.permutations(list(AXES))):
        place = draw(st.integers(-2, len(shape) - 1))
        if place >= 0:
            dims[place].append(axis)
        elif place == -1:
            pending.append(axis)
    sizes: list[ShardSizes] = []
    for dim, axes in enumerate(dims):
        if axes and draw(st.booleans()):
            count = GRID.members(axes)
            cuts = sorted(draw(st.lists(st.integers(0, shape[dim]), min_size=count - 1, max_size=count - 1)))
            listed = [stop - start for start, stop in zip([0, *cuts], [*cuts, shape[dim]], strict=True)]
            listed[-1] += draw(st.integers(0, 2))  # padding at the end
            sizes.append(ShardSizes(dim, tuple(listed)))
    used = {axis for axes in dims for axis in axes} | set(pending)
    op = draw(st.sampled_from(FOLDS))
    sharding = ShardingSpec(
        tuple(tuple(axes) for axes in dims),
        tuple(axis for axis in AXES if axis not in used),
        Partial(tuple(pending), op) if pending else None,
        sizes=tuple(sizes),
    )
    value = DistributedValue(
        ValueId.derive("t", "x"), TensorType(shape, "f32"), ValueRole.INPUT, sharding, all_ranks(GRID.count), Lineage.root(),
        name="x", scale=Scale(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
    )  # fmt: skip
    return case_value(value, 0, shape, tuple(range(GRID.count)))


@given(values(), st.integers(0, 2**31), st.booleans())
def test_what_is_scattered_means_what_it_was(value: CaseValue, seed: int, positive: bool) -> None:
    source = Source(Floats(np), seed, positive)
    whole = source.whole(value)
    assert whole is not None
    arrays = source.scatter(value, whole, GRID)
    assert all(arrays[rank].shape == value.local_shape(GRID, rank) for rank in value.owners)
    for ranks in replicas(value, GRID, value.owners):
        found = assemble(value, GRID, source.arithmetic, arrays, ranks)
        np.testing.assert_allclose(found, whole * float(value.scale), rtol=1e-9, atol=1e-9)


@given(values(), st.integers(0, 2**31))
def test_shares_are_exact_modulo_a_prime(value: CaseValue, seed: int) -> None:
    if any(kind in (ReductionKind.MAX, ReductionKind.MIN) for kind in value.folds.values()):
        return  # a field has no order
    source = Source(Field(np, 1_048_573), seed, positive=False)
    whole = source.whole(value)
    assert whole is not None
    found = assemble(value, GRID, source.arithmetic, source.scatter(value, whole, GRID), value.owners)
    assert np.array_equal(found, source.arithmetic.settle(whole * source.arithmetic.number(value.scale)))


@given(values(), st.integers(0, 2**31))
def test_no_share_is_the_whole(value: CaseValue, seed: int) -> None:
    if ReductionKind.SUM not in value.folds.values() or not all(value.shape):
        return
    source = Source(Floats(np), seed, positive=False)
    whole = source.whole(value)
    assert whole is not None
    arrays = source.scatter(value, whole, GRID)
    for rank in value.owners:
        spans = value.block(GRID, rank)
        block = whole[tuple(slice(span.start, span.stop) for span in spans)]
        if block.size:
            real = tuple(slice(0, span.stop - span.start) for span in spans)
            assert not np.allclose(arrays[rank][real], float(value.scale) * block)


@given(values())
def test_a_missing_block_or_share_is_no_meaning(value: CaseValue) -> None:
    source = Source(Floats(np), 0, positive=False)
    arrays = source.scatter(value, source.whole(value), GRID)
    axes = (*value.split, *value.folds)
    for place in sorted(needed_places(value, GRID))[:2]:
        left = {rank: array for rank, array in arrays.items() if GRID.place(rank, axes) != place}
        assert assemble(value, GRID, source.arithmetic, left, value.owners) is None


@given(st.integers(0, 30), st.integers(1, 9))
def test_even_blocks_cover_every_element_once(extent: int, count: int) -> None:
    spans = [even_span(extent, count, index) for index in range(count)]
    assert [k for span in spans for k in range(span.start, span.stop)] == list(range(extent))
    assert all(span.held == span.stop - span.start for span in spans)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 3))
def test_listed_blocks_cover_every_element_once_and_pad_behind(sizes: list[int], padding: int) -> None:
    extent = max(0, sum(sizes) - padding)
    spans = [listed_span(extent, sizes, index) for index in range(len(sizes))]
    assert [k for span in spans for k in range(span.start, span.stop)] == list(range(extent))
    assert [span.held for span in spans] == sizes


@given(st.permutations(list(AXES)), st.integers(0, 3))
def test_fibres_part_the_ranks_and_keep_the_order_of_their_axes(axes: list[str], count: int) -> None:
    chosen = axes[:count]
    groups = GRID.fibres(chosen)
    assert sorted(rank for group in groups for rank in group) == list(range(GRID.count))
    for group in groups:
        assert [GRID.position(rank, chosen) for rank in group] == list(range(GRID.members(chosen)))


def test_the_grid_counts_ranks_as_the_mesh_does() -> None:
    mesh = LogicalMesh("m", tuple(MeshAxis(name, size) for name, size in AXES.items()))
    for rank in range(mesh.size):
        assert GRID.place(rank, AXES) == mesh.coordinates(rank)
