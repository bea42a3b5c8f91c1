"""Blocks, owners and sizes: what ranks hold, against the elements themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.blocks import box_of, is_even, padding_of, shard_bounds, volume
from dtir.analysis.fibres import factor_mesh
from dtir.analysis.holders import meet, uncovered, without
from dtir.analysis.states import State
from dtir.analysis.volume import bytes_of_shape, message_bytes, wire_bytes
from dtir.ir.collectives import CollectiveKind
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange

MESH = LogicalMesh("m", (MeshAxis("a", 2), MeshAxis("b", 3)))
SPACE, _ = factor_mesh(MESH, [])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_shards_follow_each_other_and_cover_the_dim(sizes: list[int]) -> None:
    bounds = shard_bounds(sum(sizes), len(sizes), sizes)
    assert [stop - start for start, stop in bounds] == sizes
    assert bounds[0][0] == 0
    assert bounds[-1][1] == sum(sizes)


def test_padding_is_what_sizes_have_beyond_the_dim() -> None:
    assert shard_bounds(5, 3, (2, 2, 2)) == ((0, 2), (2, 4), (4, 5))
    assert padding_of(5, (2, 2, 2)) == 1
    assert padding_of(6, (2, 2, 2)) == padding_of(6, None) == 0
    assert is_even(6, 3, (2, 2, 2))
    assert not is_even(5, 3, (2, 2, 2))
    assert not is_even(5, 2, (3, 2))


def test_a_dim_that_is_not_divisible_has_no_shards() -> None:
    with pytest.raises(ValueError, match="5 elements do not split evenly over 2"):
        shard_bounds(5, 2)
    with pytest.raises(ValueError, match="2 sizes for 3 shards"):
        box_of((6,), State((("b",),), sizes=((3, 3),)), SPACE, 0)


@given(st.permutations(["a", "b"]), st.booleans())
def test_every_element_is_held_once_for_each_replica(order: list[str], both: bool) -> None:
    axes = tuple(order if both else order[:1])
    state = State((axes, ()))
    held = np.zeros((12, 2), dtype=int)
    for rank in range(MESH.size):
        held[tuple(slice(*bounds) for bounds in box_of((12, 2), state, SPACE, rank))] += 1
    assert (held == MESH.size // SPACE.count(axes)).all()


def test_blocks_are_numbered_major_to_minor() -> None:
    assert [box_of((12,), State((("b", "a"),)), SPACE, rank)[0][0] // 2 for rank in range(6)] == [0, 2, 4, 1, 3, 5]
    assert volume(box_of((12, 4), State((("a",), ())), SPACE, 0)) == 24


def test_owners_must_cover_shards_and_shares_but_not_copies() -> None:
    split = State((("b",),))
    assert uncovered((0, 1, 2), split, SPACE) is None
    assert uncovered((0, 4, 2), split, SPACE) is None
    gap = uncovered((0, 3, 1), split, SPACE)
    assert gap is not None
    assert (gap.missing, gap.first) == (1, (("b", 2),))
    assert uncovered((0,), State(((),)), SPACE) is None
    stray = uncovered((0, 1, 2, 4), State((("b",),), at=(("a", 0),)), SPACE)
    assert stray is not None
    assert stray.stray == 4


def test_rank_sets_are_compared_without_being_expanded() -> None:
    everyone = RankRange(0, 2_000_000_000)
    assert without(everyone, everyone, 2_000_000_000) == ()
    assert without((5, 1, 3), (3,), 6) == (1, 5)
    assert without((5, 1), RankRange(0, 4), 6) == (5,)
    assert meet((7,), everyone)
    assert not meet((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("kind", "wanted", "wire"),
    [
        (CollectiveKind.ALL_REDUCE, 10, 60),
        (CollectiveKind.REDUCE_SCATTER, 10, 30),
        (CollectiveKind.ALL_TO_ALL, 10, 30),
        (CollectiveKind.BROADCAST, 10, 30),
        (CollectiveKind.ALL_GATHER, 40, 30),
        (CollectiveKind.COLLECTIVE_PERMUTE, 10, 10),
    ],
)
def test_the_size_of_a_message_is_that_of_the_larger_side(kind: CollectiveKind, wanted: int, wire: int) -> None:
    assert message_bytes(kind, 10, 40) == wanted
    assert wire_bytes(kind, 4, 10) == wire


def test_bytes_of_types() -> None:
    assert bytes_of_shape((3, 4), "f32") == 48
    assert bytes_of_shape((3,), "s4") == 2
    assert bytes_of_shape((), "bf16") == 2
    assert bytes_of_shape((2,), "mystery") is None
