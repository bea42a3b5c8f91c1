"""Shardy's layouts and its communication on whole values, as layouts and collectives of the IR."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.hlo.meshes import AxisRef
from dtir.importers.stablehlo.axis_lists import joined, without_suffix
from dtir.importers.stablehlo.sdy import SdyMesh, parse_list, parse_mesh, parse_sharding
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, CollectivePermute, ReduceScatter
from dtir.ir.program import DistributedTaskIR
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import Collective, LocalCompute, Reshard
from tests.importers.stablehlo.mlir_files import fixture, program

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2, "z"=3]>\n'


def relayout(stated: str, operand: str, kind: str = "tensor<48x48xf32>", head: str = MESH) -> DistributedTaskIR:
    return program(
        f"{head}func.func @main(%a: {kind} {{sdy.sharding = #sdy.sharding{operand}}}) -> {kind} {{\n"
        f"  %0 = sdy.{stated} : {kind}\n  return %0 : {kind}\n}}\n"
    )


def specs(found: DistributedTaskIR) -> list[object]:
    return [one.body.spec for one in found.tasks if isinstance(one.body, Collective)]


def layouts(found: DistributedTaskIR) -> list[tuple[tuple[str, ...], ...]]:
    return [value.sharding.dimension_axes for value in found.values]


def test_a_gather_of_two_dims_is_two_gathers() -> None:
    found = relayout('all_gather [{"y"}, {"z"}] %a out_sharding=<@mesh, [{"x"}, {}]>', '<@mesh, [{"x", "y"}, {"z"}]>')
    first, second = specs(found)
    assert isinstance(first, AllGather)
    assert isinstance(second, AllGather)
    assert (first.axes, first.dim, second.axes, second.dim) == (("y",), 0, ("z",), 1)
    assert (first.message_bytes, second.message_bytes) == (12 * 16 * 4, 12 * 48 * 4)
    assert layouts(found) == [(("x", "y"), ("z",)), (("x",), ("z",)), (("x",), ())]


def test_a_part_of_an_axis_is_an_axis_of_the_program() -> None:
    found = relayout('all_gather [{"x":(2)2}, {}] %a out_sharding=<@mesh, [{"x":(1)2}, {}]>', '<@mesh, [{"x"}, {}]>')
    (gather,) = specs(found)
    assert isinstance(gather, AllGather)
    assert gather.axes == ("x:(2)2",)
    assert [(axis.name, axis.size) for axis in found.mesh.axes][:2] == [("x:(1)2", 2), ("x:(2)2", 2)]


def test_an_exchange_moves_axes() -> None:
    found = relayout(
        'all_to_all [{"y"}: 0->1] %a out_sharding=<@mesh, [{"x"}, {"z", "y"}]>', '<@mesh, [{"x", "y"}, {"z"}]>'
    )
    (exchange,) = specs(found)
    assert isinstance(exchange, AllToAll)
    assert (exchange.axes, exchange.split_dim, exchange.concat_dim) == (("y",), 1, 0)


def test_reductions() -> None:
    found = relayout(
        'all_reduce max {"y"} %a out_sharding=<@mesh, [{"x"}, {}]>', '<@mesh, [{"x"}, {}], unreduced=max{"y"}>'
    )
    (reduce,) = specs(found)
    assert isinstance(reduce, AllReduce)
    assert (reduce.axes, reduce.reduction) == (("y",), ReductionKind.MAX)
    assert found.values[0].sharding.partial_axes == ("y",)
    found = relayout(
        'reduce_scatter [{"y"}, {}] %a out_sharding=<@mesh, [{"x", "y"}, {}]>', '<@mesh, [{"x"}, {}], unreduced={"y"}>'
    )
    (scatter,) = specs(found)
    assert isinstance(scatter, ReduceScatter)
    assert (scatter.axes, scatter.dim, scatter.message_bytes) == (("y",), 0, 12 * 48 * 4)
    assert found.values[1].sharding.partial is None


def test_a_permute_says_which_rank_sends_to_which() -> None:
    head = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
    found = relayout('collective_permute %a out_sharding=<@mesh, [{"y"}, {"x"}]>', '<@mesh, [{"x"}, {"y"}]>', head=head)
    (permute,) = specs(found)
    assert isinstance(permute, CollectivePermute)
    assert permute.pairs == ((0, 0), (1, 2), (2, 1), (3, 3))


@pytest.mark.parametrize(
    "stated",
    [
        'all_slice [{"y"}, {}] %a out_sharding=<@mesh, [{"x", "y"}, {}]>',
        'replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}, {}], unreduced={"y"}>',
        'sharded_to_unreduced [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}], unreduced={"x"}>',
    ],
)
def test_what_sends_nothing_is_local(stated: str) -> None:
    found = relayout(stated, '<@mesh, [{"x"}, {}]>')
    (task,) = found.tasks
    assert isinstance(task.body, LocalCompute)
    assert task.operation.dialect == "sdy"


def test_a_reshard_and_what_a_layout_cannot_say() -> None:
    found = relayout('reshard %a <@mesh, [{?}, {"z"}p2], replicated={"x"}>', '<@mesh, [{"x"}, {}]>')
    (task,) = found.tasks
    assert isinstance(task.body, Reshard)
    value = found.values[-1]
    assert (value.sharding.dimension_axes, value.sharding.replicated_axes) == (((), ("z",)), ("x", "y"))
    assert (value.attributes["sdy.open_dims"], value.attributes["sdy.priorities"]) == ((0,), (-1, 2))
    assert value.attributes["hlo.sharding"] == '<@mesh, [{?}, {"z"}p2], replicated={"x"}>'


def test_a_value_in_a_manual_computation_varies_along_its_axes() -> None:
    found = program(
        MESH
        + 'func.func @main(%a: tensor<48x48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<48x48xf32> {\n'
        + '  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>]\n'
        + '      manual_axes={"x"} (%b: tensor<12x48xf32>) {\n'
        + '    %1 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<12x48xf32>\n'
        + "    sdy.return %1 : tensor<12x48xf32>\n  } : (tensor<48x48xf32>) -> tensor<48x48xf32>\n"
        + "  return %0 : tensor<48x48xf32>\n}\n"
    )
    region = next(one for one in found.regions if one.name.endswith("manual"))
    layout = region.values[-1].sharding
    assert (layout.dimension_axes, layout.varying, layout.replicated_axes) == (((), ("y",)), ("x",), ("z",))


def test_several_meshes_and_maximal_ones() -> None:
    found = program(
        'sdy.mesh @a = <["x"=2, "y"=2]>\nsdy.mesh @b = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>\n'
        "sdy.mesh @one = <[], device_ids=[1]>\n"
        'func.func @main(%p: tensor<4xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>},'
        ' %q: tensor<4xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) {\n'
        "  stablehlo.custom_call @f(%p) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<4xf32>) -> ()\n"
        "  return\n}\n"
    )
    # A mesh in another order of devices: its first axis is the second of the first mesh.
    assert layouts(found)[:2] == [(("x",),), (("y",),)]
    assert dict(found.attributes["mlir.meshes"])["one"] == "[], device_ids=[1]"


def test_gspmd_strings() -> None:
    found = program(fixture("reshard_chain_gspmd__gspmd"))
    assert found.values[0].sharding.dimension_axes != ((), (), ())
    assert found.attributes["hlo.form"] == "global"


def test_a_dim_of_unknown_size_is_a_symbol() -> None:
    found = program(
        MESH + 'func.func @main(%a: tensor<?x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) { return }\n'
    )
    assert not isinstance(found.values[0].type.shape[0], int)
    assert found.values[0].type.shape[1] == 8


def test_records() -> None:
    assert parse_mesh('<["a"=2, "b c"=3], device_ids=[5, 4, 3, 2, 1, 0]>').device_ids == (5, 4, 3, 2, 1, 0)
    assert parse_mesh("<[], device_ids=[3]>").is_maximal
    stated = parse_sharding('#sdy.sharding<mesh<["a"=2]>, [{"a", ?}p0, {}], replicated={}, unreduced=min{}>')
    assert stated.inline == SdyMesh((("a", 2),))
    assert stated.reduction == "min"
    assert len(parse_list('#sdy.sharding_per_value<[<@m, []>, <@m, [{"a"}]>]>')) == 2


@st.composite
def _lists(draw: st.DrawFn) -> tuple[SdyMesh, list[AxisRef]]:
    """Factors of two axes in some order, each once."""
    mesh = SdyMesh((("x", 8), ("y", 4)))
    parts = [AxisRef("x", 1, 2), AxisRef("x", 2, 2), AxisRef("x", 4, 2), AxisRef("y", 1, 2), AxisRef("y", 2, 2)]
    return mesh, draw(st.lists(st.sampled_from(parts), unique=True, max_size=5))


@given(_lists(), st.integers(0, 5))
def test_what_is_put_behind_can_be_taken_away(drawn: tuple[SdyMesh, list[AxisRef]], cut: int) -> None:
    mesh, refs = drawn
    front, back = refs[:cut], refs[cut:]
    whole = joined(refs, mesh)
    assert prod(mesh.size_of(ref) for ref in whole) == prod(mesh.size_of(ref) for ref in refs)
    assert without_suffix(whole, joined(back, mesh), mesh) == joined(front, mesh)


def test_results_before_the_partitioner_may_be_pending() -> None:
    """A result in another layout than it is asked for is the compiler's to bring there."""
    from dtir.verify import verify

    found = program(
        MESH + 'func.func @main(%a: tensor<48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) ->'
        ' (tensor<48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {\n  return %a : tensor<48xf32>\n}\n'
    )
    assert [item.code for item in verify(found).diagnostics if item.severity.value == "error"] == []


@pytest.mark.parametrize(
    ("stated", "operand"),
    [
        ('all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]>', '<@mesh, [{"x"}, {}]>'),
        ('all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}]>', '<@mesh, [{"x"}, {}]>'),
    ],
)
def test_shards_of_different_sizes_are_a_change_of_layout(stated: str, operand: str) -> None:
    (task,) = relayout(stated, operand, "tensor<6x6xf32>").tasks
    assert isinstance(task.body, Reshard)
    assert task.operation.dialect == "sdy"


def test_shardings_that_xla_carries_as_strings() -> None:
    """Boundaries, meshes and shardings in frontend attributes: the same program as with Shardy's own operations."""
    carried = (
        'module @m attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\\22x\\22=4, \\"y\\"=2]>}"}} {\n'
        " func.func public @main(%a: tensor<8x8xf32> {mhlo.frontend_attributes = "
        '{xla.sdy.sharding = "#sdy.sharding<@mesh, [{\\22x\\22}, {}]>"}}) -> tensor<8x8xf32> {\n'
        "  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%a) {has_side_effect = true, mhlo.frontend_attributes = "
        '{xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\\22x\\22}, {}]>]>", '
        'xla.sdy.manual_axes = "#sdy<manual_axes{\\22x\\22}>"}} : (tensor<8x8xf32>) -> tensor<2x8xf32>\n'
        "  %1 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%0) {has_side_effect = true, mhlo.frontend_attributes = "
        '{xla.sdy.manual_axes = "#sdy<manual_axes{\\22x\\22}>", '
        'xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@mesh, [{\\22x\\22}, {}]>]>"}} : (tensor<2x8xf32>) -> tensor<8x8xf32>\n'
        "  return %1 : tensor<8x8xf32>\n }\n}\n"
    )
    found = program(carried)
    assert [(axis.name, axis.size) for axis in found.mesh.axes] == [("x", 4), ("y", 2)]
    assert found.values[0].sharding.dimension_axes == (("x",), ())
    entries = dict(found.tasks[0].attributes["hlo.frontend_attributes"])
    assert entries["xla.sdy.manual_axes"] == '#sdy<manual_axes{"x"}>'
