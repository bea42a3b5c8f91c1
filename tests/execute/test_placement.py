from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import Slab
from dtir.execute.data import part_of
from dtir.execute.exchange import Moves
from dtir.execute.fabric import LocalFabric
from dtir.execute.moves import copy_moves, halo_moves, peer_moves, region_moves
from dtir.execute.placement import Placement, PlacementError, concrete
from dtir.execute.values import Held, at, stack
from dtir.ir import (
    AxisCoordinate,
    Halo,
    HaloDim,
    LogicalMesh,
    MeshAxis,
    Partial,
    ReductionKind,
    ReshardRegion,
    ShardingSpec,
    ShardSizes,
    Span,
    Symbol,
)
from dtir.ir.expr import BindingAxis

MESH = LogicalMesh("m", (MeshAxis("a", 2), MeshAxis("b", 3)))


def placed(shape: tuple[int, ...], *dims: tuple[str, ...], **fields: object) -> Placement:
    used = {axis for axes in dims for axis in axes}
    rest = tuple(axis for axis in MESH.axis_names if axis not in used)
    return Placement(MESH, shape, ShardingSpec(dims, rest, **fields))  # type: ignore[arg-type]


def test_blocks_are_numbered_major_to_minor() -> None:
    both = placed((12,), ("a", "b"))
    assert [both.box(rank) for rank in range(6)] == [((2 * rank, 2 * rank + 2),) for rank in range(6)]
    turned = placed((12,), ("b", "a"))
    assert [turned.box(rank)[0][0] for rank in range(6)] == [0, 4, 8, 2, 6, 10]


def test_uneven_sizes_and_padding() -> None:
    uneven = placed((7,), ("b",), sizes=(ShardSizes(0, (4, 2, 1)),))
    assert [uneven.box(rank) for rank in range(3)] == [((0, 4),), ((4, 6),), ((6, 7),)]
    padded = placed((5,), ("b",), sizes=(ShardSizes(0, (2, 2, 2)),))
    assert [padded.local_shape(rank) for rank in range(3)] == [(2,), (2,), (2,)]
    assert padded.box(2) == ((4, 5),)
    assert part_of(np.arange(5), padded, 2).tolist() == [4, 0]


def test_what_does_not_split_is_an_error() -> None:
    with pytest.raises(PlacementError, match="dim 0 of 7 elements does not split over 3 ranks"):
        placed((7,), ("b",)).box(0)
    with pytest.raises(PlacementError, match="2 shard sizes for 3 shards"):
        placed((7,), ("b",), sizes=(ShardSizes(0, (4, 3)),)).box(0)


def test_symbols_need_a_value() -> None:
    batch = Symbol("B", BindingAxis.WORKLOAD)
    assert concrete(batch * 2, {"B": 3}) == 6
    with pytest.raises(PlacementError, match="the size B has no value"):
        concrete(batch * 2, {})
    with pytest.raises(PlacementError, match=r"the size 1\.5 is no whole number"):
        concrete(batch / 2, {"B": 3})


def test_ghosts_wrap_around() -> None:
    halo = Halo((HaloDim(0, 1, 2),))
    placement = placed((6,), ("b",), halo=halo)
    assert placement.local_shape(0) == (5,)
    assert part_of(np.arange(6), placement, 0).tolist() == [5, 0, 1, 2, 3]
    assert part_of(np.arange(6), placement, 2).tolist() == [3, 4, 5, 0, 1]


def test_pending_parts_fold_to_the_value() -> None:
    whole = np.asarray([1.5, -2.0], np.float32)
    for kind, fold in (
        (ReductionKind.SUM, np.sum),
        (ReductionKind.PRODUCT, np.prod),
        (ReductionKind.MAX, np.max),
        (ReductionKind.MIN, np.min),
    ):
        pending = Placement(MESH, (2,), ShardingSpec(((),), ("a",), partial=Partial(("b",), kind)))
        parts = np.stack([part_of(whole, pending, rank) for rank in range(3)])
        assert fold(parts, axis=0).tolist() == whole.tolist()
        assert not np.array_equal(parts[1], whole)


def test_one_coordinate_only() -> None:
    confined = Placement(MESH, (2,), ShardingSpec(((),), ("b",), at=(AxisCoordinate("a", 1),)))
    assert confined.box(4) == ((0, 2),)


# -- moves -----------------------------------------------------------------------------------------------------------------


def held(whole: np.ndarray, placement: Placement, ranks: range) -> Held:
    return stack(tuple(ranks), [part_of(whole, placement, rank) for rank in ranks])


def move(moves: Moves, operand: Held) -> Held:
    return LocalFabric(range(6)).move(moves, operand, tuple(range(6)))


DIMS = st.sampled_from(
    [((), ()), (("a",), ()), ((), ("b",)), (("a",), ("b",)), (("b",), ("a",)), (("a", "b"), ()), ((), ("b", "a"))]
)


@given(DIMS, DIMS)
def test_any_layout_becomes_any_other(before: tuple, after: tuple) -> None:
    whole = np.arange(6 * 12, dtype=np.int64).reshape(6, 12)
    source, target = placed((6, 12), *before), placed((6, 12), *after)
    moves = copy_moves(source, range(6), target, range(6))
    found = move(moves, held(whole, source, range(6)))
    for rank in range(6):
        assert np.array_equal(at(found, rank), part_of(whole, target, rank))
    # Nothing that a rank has already crosses ranks.
    for one in moves.moves:
        if one.source != one.destination:
            wanted = target.box(one.destination)
            own = source.box(one.destination)
            start = wanted[0][0] + one.destination_box[0][0], wanted[1][0] + one.destination_box[1][0]
            assert not all(low <= place < high for place, (low, high) in zip(start, own, strict=True))


def test_pending_axes_are_kept_apart() -> None:
    source = Placement(MESH, (6,), ShardingSpec((("a",),), partial=Partial(("b",), ReductionKind.SUM)))
    target = Placement(MESH, (6,), ShardingSpec(((),), ("a",), partial=Partial(("b",), ReductionKind.SUM)))
    moves = copy_moves(source, range(6), target, range(6))
    assert all(one.source % 3 == one.destination % 3 for one in moves.moves)


@given(st.integers(0, 2), st.integers(0, 2), st.booleans())
def test_halos_are_the_neighbours(before: int, after: int, corners: bool) -> None:
    whole = np.arange(6 * 6).reshape(6, 6)
    plain = placed((6, 6), ("a",), ("b",))
    dims = tuple(HaloDim(dim, before, after) for dim in (0, 1))
    framed = Placement(MESH, (6, 6), ShardingSpec((("a",), ("b",)), halo=Halo(dims, corners)))
    found = move(halo_moves(plain, range(6), framed, range(6)), held(whole, plain, range(6)))
    for rank in range(6):
        wanted = part_of(whole, framed, rank)
        if not corners:
            outside = np.zeros(wanted.shape, int)
            rows, columns = (cut for cut in framed.interior(rank))
            inside_rows = np.zeros(wanted.shape[0], bool)
            inside_rows[rows] = True
            inside_columns = np.zeros(wanted.shape[1], bool)
            inside_columns[columns] = True
            outside[:] = (~inside_rows)[:, None] & (~inside_columns)[None]
            wanted = np.where(outside, 0, wanted)
        assert np.array_equal(at(found, rank), wanted)


def test_regions_fill_what_they_name() -> None:
    source, target = placed((4, 3), ("a",), ()), placed((4, 3), (), ("b",))
    regions = (
        ReshardRegion((Span(0, 1), Span(0, 3)), (Span(3, 4), Span(0, 3))),
        ReshardRegion((Span(2, 3), Span(1, 2))),
    )
    whole = np.arange(1, 13).reshape(4, 3)
    found = move(region_moves(regions, source, range(6), target, range(6)), held(whole, source, range(6)))
    assert at(found, 0).tolist() == [[10], [0], [0], [0]]
    assert at(found, 1).tolist() == [[11], [0], [8], [0]]
    with pytest.raises(PlacementError, match="the sizes differ"):
        region_moves(
            (ReshardRegion((Span(0, 2), Span(0, 3)), (Span(0, 1), Span(0, 3))),), source, range(6), target, range(6)
        )


def test_transfers_between_stages() -> None:
    source = Placement(MESH, (2,), ShardingSpec(((),), at=(AxisCoordinate("a", 0),), replicated_axes=("b",)))
    target = Placement(MESH, (2,), ShardingSpec(((),), at=(AxisCoordinate("a", 1),), replicated_axes=("b",)))
    moves = peer_moves([(0, 3), (1, 4), (2, 5)], source, (0, 1, 2), target, (3, 4, 5))
    operand = Slab((0, 1, 2), np.asarray([[1, 2], [3, 4], [5, 6]]))
    found = move(moves, operand)
    assert list(found.ranks) == [3, 4, 5]
    assert at(found, 4).tolist() == [3, 4]
    with pytest.raises(PlacementError, match=r"rank 0 sends \[2\] elements, rank 3 receives \[3\]"):
        peer_moves([(0, 3)], source, (0,), Placement(MESH, (3,), target.sharding), (3,))
