"""MPMD programs: the meshes of a topology side by side, fragments on one of them, transfers between them."""

from __future__ import annotations

import pytest

from dtir.importers.stablehlo.importer import import_mlir
from dtir.importers.stablehlo.mpmd import AXIS, MeshTensor, Topology
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Call, Loop, Reshard
from dtir.verify import verify
from tests.importers.stablehlo.mlir_files import program

HEAD = (
    '!one = !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@mesh, [{"x"}, {}]>>\n'
    '!two = !mpmd.mesh_tensor<"m2", tensor<8x8xf32>>\nsdy.mesh @mesh = <["x"=4]>\n'
)


def text(body: str, topology: str = '<<"m1" : <["x"=4]>>, <"m2" : <["x"=4]>>>') -> str:
    return (
        f"{HEAD}func.func @main(%a: !one) -> !two attributes {{topology = #mpmd.topology{topology}}} {{\n{body}"
        "  return %1 : !two\n}\n"
    )


TWO = (
    '  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) (%b: tensor<8x8xf32>) {\n'
    "    %n = stablehlo.negate %b : tensor<8x8xf32>\n    mpmd.return %n : tensor<8x8xf32>\n  } : (!one) -> !one\n"
    "  %1 = mpmd.transfer %0 : (!one) -> !two\n"
)


def ranks(found: DistributedTaskIR) -> list[list[int]]:
    return [list(task.ranks) for task in found.tasks]


def test_fragments_run_on_their_mesh_and_transfers_between_them() -> None:
    found = program(text(TWO))
    assert [(axis.name, axis.size) for axis in found.mesh.axes] == [(AXIS, 2), ("x", 4)]
    assert ranks(found) == [[0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7]]
    call, transfer = (task.body for task in found.tasks)
    assert isinstance(call, Call)
    assert isinstance(transfer, Reshard)
    assert found.tasks[0].attributes["hlo.mpmd.origin"] == '"f"'
    argument, _, moved = found.values
    assert (argument.sharding.dimension_axes, argument.sharding.at[0].coordinate) == ((("x",), ()), 0)
    assert (list(moved.owners), moved.sharding.at[0].coordinate) == ([4, 5, 6, 7], 1)
    (region,) = found.regions
    assert all(list(task.ranks) == [0, 1, 2, 3] for task in region.tasks)
    assert [item.code for item in verify(found).diagnostics if item.severity.value == "error"] == []


@pytest.mark.parametrize(
    "topology",
    ['<<"m1" : <["x"=4]>>, <"m2" : <["y"=2]>>>', '<<"m1" : <["x"=4]>>>', "<nonsense>", '<<"m1" : <[oops]>>>'],
)
def test_other_topologies_are_attributes_only(topology: str) -> None:
    found = program(text(TWO, topology))
    assert [(axis.name, axis.size) for axis in found.mesh.axes] == [("x", 4)]
    assert found.tasks[0].attributes["hlo.mpmd.mesh"] == "m1"


def test_a_loop_with_a_stated_number_of_iterations() -> None:
    body = (
        "  %0 = mpmd.for (%a) {iterations = 12 : ui32, unroll_factor = 3 : ui32} (\n"
        "      %b: !one, %index: tensor<ui32>) {\n"
        '    %f = mpmd.fragment<mesh="m1", origin=["f"]> (%b) (%c: tensor<8x8xf32>) {\n'
        "      mpmd.return %c : tensor<8x8xf32>\n    } : (!one) -> !one\n"
        "    mpmd.return %f : !one\n  } : !one\n  %1 = mpmd.transfer %0 : (!one) -> !two\n"
    )
    found = program(text(body))
    loop = next(task for task in found.tasks if isinstance(task.body, Loop))
    assert isinstance(loop.body, Loop)
    assert loop.body.trip_count == 12
    wrong = import_mlir(text(body.replace(", %index: tensor<ui32>", "")))
    assert [item.code for item in wrong.diagnostics] == ["mlir.operand_count"]


def test_types_and_topologies() -> None:
    aliases = {"!a": '!mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m, []>>', "!loop": "!loop"}
    assert MeshTensor.of("!a", aliases) == MeshTensor("m1", "<@m, []>")
    assert MeshTensor.of("tensor<f32>", aliases) is None
    assert MeshTensor.of("!loop", aliases) is None
    found = Topology.parse('#mpmd.topology<<"a" : <["x"=2, "y"=3]>>, <"b" : <["x"=2, "y"=3]>>>')
    assert found is not None
    assert (found.number("b"), found.number("c"), found.mesh.mesh.count) == (1, -1, 6)
