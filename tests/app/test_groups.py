from __future__ import annotations

import random

from dtir_app.groups import GroupAxes, group_axes, group_label, infer_axes
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.groups import axis_fibres
from dtir.ir.collectives import AllReduce, CollectivePermute
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange, all_ranks
from dtir.ir.reductions import ReductionKind
from tests.helpers.programs import mesh_of

MESHES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
    lambda sizes: LogicalMesh("m", tuple(MeshAxis(f"a{place}x", size) for place, size in enumerate(sizes)))
)


@given(MESHES, st.data())
def test_fibres_are_recognised_in_any_order(mesh: LogicalMesh, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(mesh.axis_names), unique=True, min_size=1))
    groups = [list(group) for group in axis_fibres(mesh, axes)]
    shuffle = random.Random(data.draw(st.integers(0, 1000)))
    for group in groups:
        shuffle.shuffle(group)
    shuffle.shuffle(groups)
    found = infer_axes(tuple(tuple(group) for group in groups), mesh)
    # An axis of one coordinate spans nothing, so it cannot be seen.
    assert set(found.axes) == {name for name in axes if mesh.axis_size(name) > 1}
    assert found.whole


def test_groups_that_are_no_fibres_have_no_axes() -> None:
    mesh = mesh_of(dp=2, tp=4)
    assert infer_axes(((0, 1), (2, 3), (4, 5), (6, 7)), mesh).axes == ()
    assert infer_axes(((0, 5), (1, 4)), mesh).axes == ()
    assert infer_axes(((0, 1, 2), (3, 4)), mesh).axes == ()
    assert infer_axes(((0, 1, 2, 9),), mesh).axes == ()


def test_named_axes_are_not_inferred() -> None:
    mesh = mesh_of(dp=2, tp=4)
    spec = AllReduce(all_ranks(8), 4, ReductionKind.SUM, axes=("tp",))
    assert group_axes(spec, mesh) == GroupAxes(("tp",), inferred=False, whole=True)
    unknown = AllReduce(all_ranks(8), 4, ReductionKind.SUM, axes=("tp", "pp"))
    assert not group_axes(unknown, mesh).whole


def test_a_permute_moves_along_the_axes_that_change() -> None:
    mesh = mesh_of(dp=2, tp=4)
    spec = CollectivePermute(all_ranks(8), 4, ((0, 1), (1, 2), (4, 5)))
    assert group_axes(spec, mesh).axes == ("tp",)
    assert group_axes(CollectivePermute(all_ranks(8), 4, ((0, 5),)), mesh).axes == ("dp", "tp")


def test_labels_say_the_fixed_coordinates() -> None:
    mesh = mesh_of(dp=2, tp=4, one=1)
    assert group_label((4, 5, 6, 7), ("tp",), mesh) == "tp group @ dp=1"
    assert group_label((0, 4), ("dp",), mesh) == "dp group @ tp=0"
    assert group_label(tuple(range(8)), ("dp", "tp"), mesh) == "dp×tp group"
    assert group_label((0, 1), (), mesh) == ""


def test_a_mesh_of_many_ranks_costs_nothing() -> None:
    mesh = LogicalMesh("m", (MeshAxis("dp", 1_000_000), MeshAxis("tp", 1000)))
    spec = AllReduce(RankRange(0, 10**9), 4, ReductionKind.SUM, axes=("tp",))
    assert group_axes(spec, mesh).axes == ("tp",)
    assert group_label(axis_fibres(mesh, ("tp",))[999_999], ("tp",), mesh) == "tp group @ dp=999999"
