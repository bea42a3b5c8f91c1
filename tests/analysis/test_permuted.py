"""Permutes that change a layout: right exactly when every rank gets the block that the new layout gives it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.fibres import factor_mesh
from dtir.analysis.permuted import realises
from dtir.analysis.states import State
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.reductions import ReductionKind

MESH = LogicalMesh("m", (MeshAxis("x", 2), MeshAxis("y", 2), MeshAxis("z", 3)))
SPACE, _ = factor_mesh(MESH, [])
DIMS = [
    ((), ()),
    (("x",), ()),
    (("y",), ()),
    (("x", "z"), ("y",)),
    (("z", "y"), ("x",)),
    (("y", "z"), ("x",)),
    (("z", "x"), ("y",)),
]


def block(rank: int, dims: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    return tuple(SPACE.position(rank, axes) for axes in dims)


def moves(before: tuple[tuple[str, ...], ...], after: tuple[tuple[str, ...], ...]) -> list[tuple[int, int]]:
    """For every rank the first one that has its block."""
    return [
        (next(source for source in range(12) if block(source, before) == block(target, after)), target)
        for target in range(12)
    ]


@pytest.mark.parametrize(
    ("before", "after"), [(DIMS[1], DIMS[2]), (DIMS[3], DIMS[4]), (DIMS[5], DIMS[6]), (DIMS[3], DIMS[3])]
)
def test_blocks_where_the_new_layout_has_them(
    before: tuple[tuple[str, ...], ...], after: tuple[tuple[str, ...], ...]
) -> None:
    pairs = moves(before, after)
    assert realises(pairs, State(before), State(after), SPACE, 12)
    assert not realises(pairs[1:], State(before), State(after), SPACE, 12)
    assert not realises([*pairs[1:], (pairs[0][0], pairs[1][1])], State(before), State(after), SPACE, 12)


@given(st.permutations(range(12)), st.sampled_from(DIMS), st.sampled_from(DIMS))
def test_it_is_what_the_blocks_say(
    order: list[int], before: tuple[tuple[str, ...], ...], after: tuple[tuple[str, ...], ...]
) -> None:
    pairs = list(enumerate(order))
    right = all(block(source, before) == block(target, after) for source, target in pairs)
    counts = [[SPACE.count(axes) for axes in dims] for dims in (before, after)]
    assert realises(pairs, State(before), State(after), SPACE, 12) == (right and counts[0] == counts[1])


def test_only_plain_layouts() -> None:
    same = [(rank, rank) for rank in range(12)]
    plain = State((("x",), ()))
    assert realises(same, plain, plain, SPACE, 12)
    for other in (
        replace(plain, partial=("y",), op=ReductionKind.SUM),
        replace(plain, varying=("y",)),
        replace(plain, at=(("y", 0),)),
        replace(plain, sizes=((1, 2), None)),
    ):
        assert not realises(same, plain, other, SPACE, 12)
        assert not realises(same, other, plain, SPACE, 12)
