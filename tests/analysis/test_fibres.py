"""Groups and mesh axes: groups made from axes are found again, sub-axes included; anything else is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.fibres import AxisSpan, factor_mesh, spans_of_groups
from dtir.analysis.groups import axis_fibres
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange


@st.composite
def meshes(draw: st.DrawFn) -> LogicalMesh:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    return LogicalMesh("m", tuple(MeshAxis(f"a{index}", size) for index, size in enumerate(sizes)))


@given(meshes(), st.data())
def test_fibres_of_axes_are_those_axes(mesh: LogicalMesh, data: st.DataObject) -> None:
    names = data.draw(st.permutations(mesh.axis_names))
    chosen = tuple(names[: data.draw(st.integers(0, len(names)))])
    groups = tuple(tuple(group) for group in axis_fibres(mesh, chosen))
    spans = spans_of_groups(mesh, groups)
    assert spans is not None
    space, fits = factor_mesh(mesh, [spans])
    assert fits
    real = tuple(axis for axis in chosen if mesh.axis_size(axis) > 1)
    assert space.named(spans) == space.expand(real) == real


@given(st.sampled_from([4, 6, 8, 12]), st.data())
def test_fibres_of_a_part_of_an_axis(size: int, data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from([number for number in range(1, size) if size % number == 0]))
    part = data.draw(
        st.sampled_from([number for number in range(2, size // inner + 1) if (size // inner) % number == 0])
    )
    mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("x", size), MeshAxis("tp", 3)))
    step = 3 * inner
    groups = tuple(
        tuple(base + index * step for index in range(part)) for base in range(mesh.size) if base // step % part == 0
    )
    spans = spans_of_groups(mesh, groups)
    assert spans == (AxisSpan("x", inner, part),)
    space, _ = factor_mesh(mesh, [spans])
    (name,) = space.named(spans) or ()
    assert space.sizes[name] == part
    assert space.strides[name] == step
    assert math.prod(space.sizes.values()) == mesh.size


@given(meshes(), st.randoms())
def test_shuffled_groups_are_no_fibres_unless_they_happen_to_be(mesh: LogicalMesh, random: object) -> None:
    ranks = list(range(mesh.size))
    random.shuffle(ranks)  # type: ignore[attr-defined]
    half = [tuple(ranks[: len(ranks) // 2]), tuple(ranks[len(ranks) // 2 :])]
    spans = spans_of_groups(mesh, half)
    if spans is not None:
        count = math.prod(span.size for span in spans)
        assert all(len(group) == count for group in half)


@pytest.mark.parametrize(
    "groups",
    [
        ((0, 1, 2), (3,)),
        ((0, 3), (1, 2)),
        ((1, 0), (3, 2)),
        ((0, 1), (1, 2), (3, 0)),
        ((0, 1), (2, 9)),
        ((),),
        (),
    ],
)
def test_other_groups_are_none(groups: tuple[tuple[int, ...], ...]) -> None:
    mesh = LogicalMesh("m", (MeshAxis("a", 2), MeshAxis("b", 2)))
    assert spans_of_groups(mesh, groups) is None


def test_cuts_that_do_not_fit_are_left_out() -> None:
    mesh = LogicalMesh("m", (MeshAxis("x", 6),))
    twos, threes = (AxisSpan("x", 1, 2),), (AxisSpan("x", 1, 3),)
    space, fits = factor_mesh(mesh, [twos, threes])
    assert not fits
    assert space.axes == ("x:(1)3", "x:(3)2")
    assert space.named(twos) == ("x:(3)2",)
    assert space.named(threes) is None


def test_ranges_of_ranks_are_not_walked() -> None:
    mesh = LogicalMesh("m", (MeshAxis("dp", 1 << 10), MeshAxis("tp", 1 << 10)))
    assert spans_of_groups(mesh, (RankRange(0, mesh.size),)) == (
        AxisSpan("dp", 1, 1 << 10),
        AxisSpan("tp", 1, 1 << 10),
    )
    assert spans_of_groups(mesh, (RankRange(0, mesh.size, 1 << 10),)) == (AxisSpan("dp", 1, 1 << 10),)


def test_a_position_is_row_major_in_the_listed_order() -> None:
    mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 3)))
    space, _ = factor_mesh(mesh, [])
    assert [space.position(rank, ("tp", "dp")) for rank in range(6)] == [0, 2, 4, 1, 3, 5]
    assert [space.position(rank, ("dp", "tp")) for rank in range(6)] == list(range(6))
