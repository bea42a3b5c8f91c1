"""How groups lie on levels: runs by formula and fibres by pattern, against counting members."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dtir.analysis.groups import axis_fibres
from dtir.cost.spread import Spread, TooMany, spread_of, spreads_of, users_of
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange

UNITS = [(None,), (8, None), (4, 16, None), (2, 4, 8, None), (8, 64), (3, 12, None)]
units = st.sampled_from(UNITS)


def counted(members: tuple[int, ...], levels: tuple[int | None, ...]) -> Spread:
    """The spread by counting, level by level."""
    items = set(members)
    sizes: list[int] = []
    before = 1
    even = True
    for level, unit in enumerate(levels):
        held = Counter(0 if unit is None else item * before // unit for item in items)
        even = even and len(set(held.values())) == 1
        sizes.append(next(iter(held.values())))
        items, before = set(held), unit or 1
        if len(items) == 1:
            rest = (1,) * (len(levels) - level - 1)
            if even:
                return Spread((*sizes, *rest))
            return Spread((*(1,) * level, len(members), *rest), even=False)
    return Spread((*(1,) * (len(levels) - 1), len(members)), even, joined=False)


@given(st.sets(st.integers(0, 127), min_size=1, max_size=40), units)
def test_spreads_are_counted_members(members: set[int], levels: tuple[int | None, ...]) -> None:
    found = spread_of(tuple(members), levels)
    wanted = counted(tuple(members), levels)
    assert (found.even, found.joined) == (wanted.even, wanted.joined)
    assert found.members == len(members)
    if found.even and found.joined:
        assert found.sizes == wanted.sizes


@given(st.integers(0, 40), st.integers(1, 40), st.integers(1, 24), units)
def test_runs_are_spread_as_the_ranks_they_stand_for(
    start: int, count: int, step: int, levels: tuple[int | None, ...]
) -> None:
    run = RankRange(start, start + count * step, step)
    assert spread_of(run, levels) == spread_of(tuple(run), levels)


def test_a_run_of_thousands_of_millions_is_told_by_its_formula() -> None:
    assert spread_of(RankRange(0, 2**31), (8, None)).sizes == (8, 2**28)
    assert spread_of(RankRange(3, 2**31, 8), (8, 64, None)).sizes == (1, 8, 2**25)
    with pytest.raises(TooMany):
        spread_of(RankRange(0, 2**31, 3), (8, None))


axes = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(axes, st.data(), units)
def test_fibres_are_spread_as_their_groups(
    sizes: list[int], data: st.DataObject, levels: tuple[int | None, ...]
) -> None:
    mesh = LogicalMesh("m", tuple(MeshAxis(f"a{place}", size) for place, size in enumerate(sizes)))
    assume(mesh.size <= 400)
    chosen = data.draw(st.lists(st.sampled_from(mesh.axis_names), min_size=1, unique=True))
    groups = axis_fibres(mesh, chosen)
    kinds, place = spreads_of(groups, levels)
    listed = tuple(tuple(group) for group in groups)
    for number, group in enumerate(listed):
        assert kinds[0 if place is None else int(place[number])] == spread_of(group, levels)
    again, _ = spreads_of(listed, levels)
    assert set(again) == set(kinds)


@given(st.sets(st.integers(0, 63), min_size=1), st.sampled_from([2, 3, 8]))
def test_users_are_the_fullest_unit(ranks: set[int], unit: int) -> None:
    assert users_of(tuple(ranks), unit, 64) == max(Counter(rank // unit for rank in ranks).values())


def test_a_machine_without_an_outermost_level_may_not_join_a_group() -> None:
    assert not spread_of((0, 100), (8, 64)).joined
    assert spread_of((0, 60), (8, 64)).joined
    assert math.prod(spread_of((0, 100), (8, 64)).sizes) == 2
