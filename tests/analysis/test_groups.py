from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.groups import axis_fibres, group_size_of, groups_of, member_count
from dtir.ir import AllGather, AllReduce, LogicalMesh, MeshAxis, RankRange, ReductionKind, all_ranks
from tests.helpers.programs import all_reduce, mesh_of, permute


@st.composite
def meshes_and_axes(draw: st.DrawFn) -> tuple[LogicalMesh, tuple[str, ...]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    mesh = LogicalMesh("m", tuple(MeshAxis(f"a{i}", size) for i, size in enumerate(sizes)))
    names = draw(st.permutations(mesh.axis_names))
    return mesh, tuple(names[: draw(st.integers(1, len(names)))])


def by_coordinates(mesh: LogicalMesh, axes: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The definition, spelled out: fix the other coordinates, walk the listed axes in row-major order."""
    others = [name for name in mesh.axis_names if name not in axes]
    groups: list[tuple[int, ...]] = []
    for fixed in itertools.product(*(range(mesh.axis_size(name)) for name in others)):
        members: list[int] = []
        for moving in itertools.product(*(range(mesh.axis_size(name)) for name in axes)):
            place = {**dict(zip(others, fixed, strict=True)), **dict(zip(axes, moving, strict=True))}
            members.append(mesh.rank_of([place[name] for name in mesh.axis_names]))
        groups.append(tuple(members))
    return groups


@given(meshes_and_axes())
def test_fibres_are_what_the_definition_says(case: tuple[LogicalMesh, tuple[str, ...]]) -> None:
    mesh, axes = case
    fibres = axis_fibres(mesh, axes)
    wanted = by_coordinates(mesh, axes)
    assert [tuple(group) for group in fibres] == wanted
    assert [tuple(group) for group in fibres[1:]] == wanted[1:]
    assert group_size_of(fibres) == len(wanted[0])
    assert member_count(fibres) == mesh.size


@given(meshes_and_axes(), st.data())
def test_a_part_of_the_mesh_has_the_fibres_that_it_fills(
    case: tuple[LogicalMesh, tuple[str, ...]], data: st.DataObject
) -> None:
    mesh, axes = case
    wanted = by_coordinates(mesh, axes)
    chosen = data.draw(st.lists(st.sampled_from(wanted), min_size=1, unique=True))
    participants = tuple(sorted(itertools.chain.from_iterable(chosen)))
    groups = groups_of(AllReduce(participants, 4, ReductionKind.SUM, axes=axes), mesh)
    assert groups is not None
    assert sorted(tuple(group) for group in groups) == sorted(chosen)


def test_listed_groups_keep_their_order() -> None:
    mesh = mesh_of(x=4)
    spec = AllGather((0, 1, 2, 3), 8, groups=((3, 1), (0, 2)))
    assert groups_of(spec, mesh) == ((3, 1), (0, 2))


def test_without_axes_and_groups_there_is_one_group() -> None:
    mesh = mesh_of(x=4)
    assert groups_of(AllGather((2, 0), 8), mesh) == ((2, 0),)


def test_a_permute_gives_its_pairs() -> None:
    mesh = mesh_of(x=4)
    groups = groups_of(permute(mesh, ((0, 1), (3, 3))), mesh)
    assert groups == ((0, 1), (3, 3))
    assert group_size_of(groups) == 2


def test_an_axis_that_the_mesh_lacks_gives_no_groups() -> None:
    mesh = mesh_of(x=4)
    assert groups_of(all_reduce(mesh, axes=("ep",)), mesh) is None
    with pytest.raises(KeyError):
        axis_fibres(mesh, ("ep",))


def test_groups_that_differ_in_size_have_no_size() -> None:
    assert group_size_of(((0, 1), (2,))) is None
    assert group_size_of(()) is None
    assert member_count(((0, 1), (2,))) == 3


def test_two_thousand_million_ranks_cost_nothing() -> None:
    mesh = mesh_of(dp=1_000_000, tp=2_000)
    groups = groups_of(all_reduce(mesh, axes=("dp",)), mesh)
    assert groups is not None
    assert len(groups) == 2_000
    assert groups[1_999] == RankRange(1_999, 1_999 + 2_000_000_000, 2_000)
    assert member_count(groups) == 2_000_000_000
    whole = groups_of(AllReduce(all_ranks(mesh.size), 4, ReductionKind.SUM), mesh)
    assert whole is not None
    assert member_count(whole) == 2_000_000_000


@pytest.mark.parametrize("index", [8, -9])
def test_a_group_index_outside_the_range(index: int) -> None:
    with pytest.raises(IndexError):
        axis_fibres(mesh_of(dp=8, tp=2), ("tp",))[index]
