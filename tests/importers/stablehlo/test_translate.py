"""Operations as the HLO importer has them: opcodes, attributes, regions, loops, groups."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.importers.stablehlo.importer import import_mlir
from dtir.ir.collectives import AllToAll, CollectivePermute
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Branch, Call, Collective, DistributedTask, LocalCompute, Loop
from tests.importers.stablehlo.mlir_files import function, program


def task(found: DistributedTaskIR, name: str) -> DistributedTask:
    return next(one for one in found.tasks if str(one.operation) == name)


def attribute(text: str, arguments: str, operation: str, key: str) -> Any:
    return task(program(function(text, arguments)), operation).attributes[f"hlo.{key}"]


@pytest.mark.parametrize(
    ("pretty", "generic", "operation", "key", "value"),
    [
        (
            "stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
            '"stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>',
            "hlo.transpose",
            "dimensions",
            (1, 0),
        ),
        (
            "stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<4x8xf32>) -> tensor<4x2x8xf32>",
            '"stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<[0, 2]> : tensor<2xi64>} : '
            "(tensor<4x8xf32>) -> tensor<4x2x8xf32>",
            "hlo.broadcast",
            "dimensions",
            (0, 2),
        ),
        (
            "stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>",
            '"stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction LT>, '
            "compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>",
            "hlo.compare",
            "type",
            "TOTALORDER",
        ),
        (
            "stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1] : "
            "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>",
            '"stablehlo.dot_general"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], '
            "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : "
            "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>",
            "hlo.dot",
            "rhs_contracting_dims",
            (1,),
        ),
        (
            "stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 8] : "
            "(tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
            '"stablehlo.dynamic_slice"(%a, %i, %i) <{slice_sizes = array<i64: 1, 8>}> : '
            "(tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
            "hlo.dynamic-slice",
            "dynamic_slice_sizes",
            (1, 8),
        ),
        (
            "stablehlo.concatenate %a, %a, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>",
            '"stablehlo.concatenate"(%a, %a) <{dimension = 1 : i64}> : '
            "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>",
            "hlo.concatenate",
            "dimensions",
            (1,),
        ),
        (
            'stablehlo.custom_call @f(%a) {backend_config = "x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>',
            '"stablehlo.custom_call"(%a) <{call_target_name = "f"}> : (tensor<4x8xf32>) -> tensor<4x8xf32>',
            "hlo.custom-call",
            "custom_call_target",
            "f",
        ),
    ],
)
def test_both_forms_say_the_same(pretty: str, generic: str, operation: str, key: str, value: Any) -> None:
    arguments = "%a: tensor<4x8xf32>, %i: tensor<i32>"
    for text in (pretty, generic, pretty.replace("stablehlo.", "mhlo.")):
        assert attribute(f"  %0 = {text}\n  return", arguments, operation, key) == value


def test_slices_and_pads() -> None:
    text = (
        "  %0 = stablehlo.slice %a [0:4:2, 2:8] : (tensor<4x8xf32>) -> tensor<2x6xf32>\n"
        "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %1 = stablehlo.pad %a, %c, low = [1, 0], high = [0, -1], interior = [2, 0] : "
        "(tensor<4x8xf32>, tensor<f32>) -> tensor<11x7xf32>\n  return"
    )
    arguments = "%a: tensor<4x8xf32>"
    assert dict(attribute(text, arguments, "hlo.slice", "slice")) == {
        "starts": (0, 2), "limits": (4, 8), "strides": (2, 1),
    }  # fmt: skip
    assert dict(attribute(text, arguments, "hlo.pad", "padding")) == {
        "low": (1, 0), "high": (0, -1), "interior": (2, 0),
    }  # fmt: skip


REDUCERS = {
    "applies": "  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [1] : "
    "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n",
    "pretty": "  %0 = stablehlo.reduce(%a init: %c) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
    "   reducer(%x: tensor<f32>, %y: tensor<f32>)  {\n"
    "    %m = stablehlo.maximum %x, %y : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n  }\n",
    "generic": '  %0 = "stablehlo.reduce"(%a, %c) <{dimensions = array<i64: 1>}> ({\n'
    "   ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "    %m = stablehlo.maximum %x, %y : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n"
    "  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n",
}


@pytest.mark.parametrize("form", REDUCERS)
def test_reductions_in_every_form(form: str) -> None:
    constant = "  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    found = program(function(constant + REDUCERS[form] + "  return"))
    reduce = task(found, "hlo.reduce")
    region = next(one for one in found.regions if one.name == reduce.attributes["hlo.to_apply"])
    assert [str(one.operation) for one in region.tasks] == ["hlo.maximum"]
    assert task(found, "hlo.constant").attributes["hlo.literal"] == ("-inf",)


def test_a_loop_counts_its_trips_and_carries_what_it_uses_from_outside() -> None:
    text = function(
        "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %n = stablehlo.constant dense<5> : tensor<i32>\n"
        "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
        "  %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4x8xf32>\n"
        "  cond {\n"
        "    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "    stablehlo.return %t : tensor<i1>\n"
        "  } do {\n"
        "    %j = stablehlo.add %i, %one : tensor<i32>\n"
        "    %y = stablehlo.add %x, %b : tensor<4x8xf32>\n"
        "    stablehlo.return %j, %y : tensor<i32>, tensor<4x8xf32>\n"
        "  }\n"
        "  return %0#1 : tensor<4x8xf32>",
        "%a: tensor<4x8xf32>, %b: tensor<4x8xf32>",
        results="tensor<4x8xf32>",
    )
    found = program(text)
    loop = task(found, "hlo.while")
    assert isinstance(loop.body, Loop)
    assert loop.body.trip_count == 5
    assert len(loop.operand_values) == len(loop.outputs) == 3  # two of its own, and %b from outside
    body = next(one for one in found.regions if one.id == loop.body.body)
    names = {value.id: value.name for value in body.values}
    assert [names[identifier] for identifier in body.inputs] == ["%i", "%x", "%b"]
    assert len(found.outputs) == 1


def test_branches_take_what_they_use() -> None:
    text = function(
        '  %0 = "stablehlo.case"(%i) ({\n    stablehlo.return %a : tensor<4x8xf32>\n  }, {\n'
        "    %n = stablehlo.negate %b : tensor<4x8xf32>\n    stablehlo.return %n : tensor<4x8xf32>\n"
        "  }) : (tensor<i32>) -> tensor<4x8xf32>\n"
        '  %1 = "stablehlo.if"(%p) ({\n    stablehlo.return %0 : tensor<4x8xf32>\n  }, {\n'
        "    stablehlo.return %b : tensor<4x8xf32>\n  }) : (tensor<i1>) -> tensor<4x8xf32>\n"
        "  return %1 : tensor<4x8xf32>",
        "%i: tensor<i32>, %p: tensor<i1>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>",
        results="tensor<4x8xf32>",
    )
    found = [one.body for one in program(text).tasks]
    assert [body.operand_counts for body in found if isinstance(body, Branch)] == [(1, 1), (1, 1)]


def test_calls_share_their_function() -> None:
    text = (
        "module @m {\n func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %0 = call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  %1 = func.call @f(%0) : (tensor<2xf32>) -> tensor<2xf32>\n  return %1 : tensor<2xf32>\n }\n"
        " func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n }\n}\n"
    )
    found = import_mlir(text)
    assert [one.name for one in found.programs] == ["main"]
    first = found.programs[0].program
    assert first is not None
    bodies = [one.body for one in first.tasks]
    assert len(bodies) == 2
    assert all(isinstance(body, Call) for body in bodies)
    assert len(set(map(str, bodies))) == 1


def test_functions_that_nothing_calls_are_programs_of_their_own() -> None:
    one = "func.func @{0}(%a: tensor<2xf32>) -> tensor<2xf32> {{\n  return %a : tensor<2xf32>\n}}\n"
    found = import_mlir(one.format("f") + one.format("main") + one.format("g"))
    assert [program.name for program in found.programs] == ["main", "f", "g"]


def gather(groups: str, more: str, module: str = "", kind: str = "(tensor<4xf32>) -> tensor<8xf32>") -> str:
    body = (
        f'  %0 = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, replica_groups = {groups}{more}}}> : {kind}\n'
        "  return"
    )
    return f"module @m attributes {{{module}}} {{\n{function(body, '%a: tensor<4xf32>')}}}\n"


CHANNEL = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@pytest.mark.parametrize(
    ("more", "groups"),
    [
        ("", ((0, 2), (1, 3))),  # no channel: replicas, once per partition
        (CHANNEL, ((0, 1, 2, 3),)),  # a channel alone: replicas with all their partitions
        (CHANNEL + ", use_global_device_ids", ((0, 1),)),  # flattened ids
    ],
)
def test_what_group_ids_count(more: str, groups: tuple[tuple[int, ...], ...]) -> None:
    module = "mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32"
    found = program(gather("dense<[[0, 1]]> : tensor<1x2xi64>", more, module))
    spec = task(found, "hlo.all-gather").body
    assert isinstance(spec, Collective)
    from dtir.analysis.summary import summarize

    (row,) = summarize(found).collectives
    assert tuple(tuple(group) for group in row.groups or ()) == groups


def test_groups_of_different_sizes_and_along_axes() -> None:
    from dtir.analysis.summary import summarize

    ragged = (
        '  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>}> ({\n'
        "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %s = stablehlo.add %x, %y : tensor<f32>\n"
        "    stablehlo.return %s : tensor<f32>\n  }) : (tensor<4xf32>) -> tensor<4xf32>\n  return"
    )
    (row,) = summarize(program(function(ragged, "%a: tensor<4xf32>"))).collectives
    assert [tuple(group) for group in row.groups or ()] == [(0, 1, 2), (3,)]
    axes = '#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "b", sub_axis_info = (1)2>]>'
    mesh = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'
    text = mesh + gather(axes, CHANNEL + ", use_global_device_ids")
    (row,) = summarize(program(text)).collectives
    assert [tuple(group) for group in row.groups or ()] == [(0, 2), (1, 3), (4, 6), (5, 7)]


def test_an_exchange_may_split_and_join_different_dims() -> None:
    text = function(
        '  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
        "split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>\n  return"
    )
    body = task(program(text), "hlo.all-to-all").body
    assert isinstance(body, Collective)
    assert isinstance(body.spec, AllToAll)
    assert (body.spec.split_dim, body.spec.concat_dim) == (1, 0)


def test_permutes() -> None:
    text = function(
        '  %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : '
        "(tensor<4x8xf32>) -> tensor<4x8xf32>\n  return"
    )
    body = task(program(text), "hlo.collective-permute").body
    assert isinstance(body, Collective)
    assert isinstance(body.spec, CollectivePermute)
    assert body.spec.pairs == ((0, 1), (1, 0))


def test_an_unknown_operation_is_a_task_that_says_so() -> None:
    text = function('  %0:2 = vendor.magic %a, deep = [1] {k = "v"} : tensor<4x8xf32>, tensor<4x8xf32>\n  return')
    found = import_mlir(text)
    assert [item.code for item in found.diagnostics] == ["mlir.unknown_op"]
    first = found.programs[0].program
    assert first is not None
    (magic,) = first.tasks
    assert str(magic.operation) == "vendor.magic"
    assert isinstance(magic.body, LocalCompute)
    assert magic.attributes["hlo.k"] == '"v"'
    assert len(magic.outputs) == 2


def test_what_its_text_says_is_kept() -> None:
    text = function(
        '  %0 = stablehlo.negate %a : tensor<4x8xf32> loc("jit(f)/neg"("f.py":7:1))\n  return',
        '%a: tensor<4x8xf32> {jax.buffer_donor = true} loc("x")',
    )
    found = program(text)
    assert task(found, "hlo.negate").attributes["op_name"] == "jit(f)/neg"
    assert task(found, "hlo.negate").attributes["source"] == "f.py:7"
    assert found.attributes["mlir.arguments"] == ((("jax.buffer_donor", "true"),),)
    assert dict(found.attributes["mlir.operations"])["stablehlo.negate"] == 1


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("  %0 = stablehlo.negate %b : tensor<4x8xf32>\n  return", "mlir.unknown_value", 2),
        ("  %a = stablehlo.negate %a : tensor<4x8xf32>\n  return", "mlir.duplicate_value", 2),
        ("  %0 = func.call @g(%a) : (tensor<4x8xf32>) -> tensor<f32>\n  return", "mlir.unknown_function", 2),
        ("  %0 = stablehlo.transpose %a : (tensor<4x8xf32>) -> tensor<8x4xf32>\n  return", "mlir.missing_attribute", 2),
        ("  %0:2 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>\n  return", "mlir.result_types", 2),
        ("  %0 = stablehlo.negate %a : tensor<4x8xf33>\n  return", "mlir.type", 2),
        ("  %0 = stablehlo.negate %a : tensor<4x8xf32> tensor<f32>\n  return", "mlir.type", 2),
        ("  %0 = stablehlo.constant sparse : tensor<f32>\n  return", "mlir.literal", 2),
        ("  cf.br ^bb1\n ^bb1:\n  return", "mlir.blocks", 3),
        ("  %0 = call @main(%a) : (tensor<4x8xf32>) -> ()\n  return", "mlir.operand_count", 2),
    ],
)
def test_what_cannot_be_translated_has_a_line(body: str, code: str, line: int) -> None:
    found = import_mlir(function(body))
    assert found.programs[0].program is None
    assert (code, ("line", str(line))) in [(item.code, item.path[:2]) for item in found.diagnostics]


@pytest.mark.parametrize(
    ("groups", "more", "code"),
    [
        ("dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>", "", "mlir.replica_groups"),
        ("dense<[0, 1]> : tensor<2xi64>", "", "mlir.replica_groups"),
        ('#stablehlo.replica_group_mesh_axes<mesh = @no, axes = ["a"]>', "", "mlir.replica_groups"),
        ("dense<[[0, 1]]> : tensor<1x2xi64>", ", use_global_device_ids", "mlir.group_mode"),
    ],
)
def test_groups_that_are_none(groups: str, more: str, code: str) -> None:
    assert code in [item.code for item in import_mlir(gather(groups, more)).diagnostics]


def test_an_argument_of_no_type() -> None:
    assert [item.code for item in import_mlir(function("  return", "%a: tensor<4xf33>")).diagnostics] == ["mlir.type"]


def test_ids_beyond_what_the_module_states() -> None:
    text = gather("dense<[[0, 9]]> : tensor<1x2xi64>", "", "mlir.x, mhlo.num_replicas = 2 : i32")
    assert "hlo.device_count" in [item.code for item in import_mlir(text).diagnostics]


def test_functions_in_a_circle() -> None:
    one = "func.func @{0}() {{\n  call @{1}() : () -> ()\n  return\n}}\n"
    found = import_mlir(one.format("f", "g") + one.format("g", "f"))
    assert [item.code for item in found.diagnostics] == ["mlir.recursion"]


def test_tt_mlir_reduces_along_an_axis_of_its_device_mesh() -> None:
    from dtir.analysis.summary import summarize

    text = (
        'module @m attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {\n ttcore.device_module {\n  builtin.module {\n'
        "   func.func @main(%a: tensor<4x8xbf16>) -> tensor<4x4xbf16> {\n"
        '    %0 = "ttir.permute"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xbf16>) -> tensor<8x4xbf16>\n'
        '    %1 = "ttir.dot_general"(%a, %0) <{batch_dims_lhs = array<i64>, batch_dims_rhs = array<i64>, contract_dims_lhs = '
        "array<i64: 1>, contract_dims_rhs = array<i64: 0>}> : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>\n"
        '    %2 = "ttir.all_reduce"(%1) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<max>}> : '
        "(tensor<4x4xbf16>) -> tensor<4x4xbf16>\n"
        "    return %2 : tensor<4x4xbf16>\n   }\n  }\n }\n}\n"
    )
    found = program(text)
    assert [str(one.operation) for one in found.tasks] == ["hlo.transpose", "hlo.dot", "hlo.all-reduce"]
    assert found.mesh.size == 8
    (row,) = summarize(found).collectives
    assert (row.reduction, [tuple(group) for group in row.groups or ()]) == ("max", [(0, 1, 2, 3), (4, 5, 6, 7)])
    bad = import_mlir(text.replace("cluster_axis = 1", "cluster_axis = 2"))
    assert [item.code for item in bad.diagnostics] == ["mlir.replica_groups"]
