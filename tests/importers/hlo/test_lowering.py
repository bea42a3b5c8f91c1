"""Lowering: values, tasks, regions, collectives, mesh and layouts of small modules."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from dtir.importers.hlo import import_hlo
from dtir.importers.hlo.meshes import MAX_RANKS
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
)
from dtir.ir.ids import NodeId, RegionId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import RankRange
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import Partial, ShardingSpec, ShardSizes
from dtir.ir.tasks import Branch, Call, Collective, Control, DistributedTask, LocalCompute, Loop
from dtir.ir.types import OperationName
from dtir.ir.values import DistributedValue, ValueRole

ADD = "add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }\n"


def program_of(text: str, **allowed: bool) -> DistributedTaskIR:
    found = import_hlo(text, name="p")
    assert [item.render() for item in found.diagnostics.errors] == []
    assert found.program is not None
    report = found.program.diagnostics()
    assert [item.render() for item in report] == []
    return found.program


def entry(body: str, header: str = "HloModule m, num_partitions=4", before: str = ADD) -> DistributedTaskIR:
    return program_of(f"{header}\n{before}ENTRY e {{\n{body}\n}}")


def task_of(program: DistributedTaskIR, name: str) -> DistributedTask:
    return next(task for task in program.all_tasks() if task.name == name)


def value_of(program: DistributedTaskIR, name: str) -> DistributedValue:
    return next(value for value in program.all_values() if value.name == name)


def names_of(program: DistributedTaskIR, ids: tuple[ValueId, ...]) -> list[str]:
    known = {value.id: value.name for value in program.all_values()}
    return [known[identifier] for identifier in ids]


# -- dataflow ------------------------------------------------------------------------------------------------------


def test_tuples_are_names_for_their_leaves() -> None:
    program = entry(
        """
      p = (f32[2], (s32[], f32[3])) parameter(0)
      a = f32[2] get-tuple-element(p), index=0
      b = (s32[], f32[3]) get-tuple-element(p), index=1
      c = f32[3] get-tuple-element(b), index=1
      n = f32[3] negate(c)
      ROOT t = (f32[3], (f32[2], s32[])) tuple(n, b2)
    """.replace("b2", "r").replace(
            "ROOT t", "i = s32[] get-tuple-element(b), index=0\n r = (f32[2], s32[]) tuple(a, i)\n ROOT t"
        )
    )
    assert [task.name for task in program.tasks] == ["n"]
    assert names_of(program, program.inputs) == ["p[0]", "p[1]", "p[2]"]
    assert names_of(program, program.outputs) == ["n", "p[0]", "p[1]"]
    assert names_of(program, program.tasks[0].inputs) == ["p[2]"]
    structural = program.attributes["hlo.structural"]
    assert structural.to_dict() == {"tuple": 2, "get-tuple-element": 4, "parameter": 1}
    assert program.attributes["hlo.result"] == "(f32[3], (f32[2], s32[]))"


def test_a_value_used_twice_is_one_input_with_positions() -> None:
    program = entry("p = f32[2] parameter(0)  q = f32[2] parameter(1)  ROOT s = f32[2] select(q, p, q)")
    task = task_of(program, "s")
    assert names_of(program, task.inputs) == ["q", "p"]
    assert task.operands == (0, 1, 0)
    assert names_of(program, task.operand_values) == ["q", "p", "q"]


def test_outputs_that_repeat_are_listed_once_with_their_order() -> None:
    program = entry("p = f32[2] parameter(0)  n = f32[2] negate(p)  ROOT t = (f32[2], f32[2], f32[2]) tuple(n, p, n)")
    assert names_of(program, program.outputs) == ["n", "p"]
    assert program.attributes["hlo.outputs"] == (0, 1, 0)
    assert "hlo.outputs" not in entry("p = f32[2] parameter(0)  ROOT n = f32[2] negate(p)").attributes


def test_inputs_stand_in_parameter_order() -> None:
    program = entry("b = f32[2] parameter(1)  a = f32[2] parameter(0)  ROOT s = f32[2] add(a, b)")
    assert names_of(program, program.inputs) == ["a", "b"]


def test_dependencies_are_producers_and_control_predecessors() -> None:
    program = entry("""
      p = f32[2] parameter(0)
      a = f32[2] negate(p)
      b = f32[2] abs(p)
      t = (f32[2], f32[2]) tuple(a, b)
      c = f32[2] sine(p), control-predecessors={b}
      d = f32[2] cosine(p), control-predecessors={t, c}
      ROOT e = f32[2] add(c, a), control-predecessors={a}
    """)
    known = {task.id: task.name for task in program.tasks}
    found = {task.name: [known[i] for i in task.dependencies] for task in program.tasks}
    assert found == {"a": [], "b": [], "c": ["b"], "d": ["a", "b", "c"], "e": ["c", "a"]}


def test_a_program_that_only_returns_has_one_control_task() -> None:
    program = entry("ROOT p = f32[2] parameter(0)")
    assert [(str(task.operation), type(task.body)) for task in program.tasks] == [("hlo.return", Control)]


def test_an_unknown_opcode_is_a_task_that_says_so() -> None:
    found = import_hlo("e { p = f32[2] parameter(0)  ROOT q = f32[2] frobnicate(p), how={[1]} }")
    assert found.program is not None
    task = found.program.tasks[0]
    assert (str(task.operation), type(task.body), task.attributes["hlo.how"]) == (
        "hlo.frobnicate",
        LocalCompute,
        "{[1]}",
    )
    assert [item.code for item in found.diagnostics.warnings] == ["hlo.unknown_opcode"]


def test_ids_are_derived_from_names_and_stay() -> None:
    text = "HloModule m\nENTRY e { p = (f32[2], f32[3]) parameter(0)  a = f32[2] get-tuple-element(p), index=0  ROOT n = f32[2] negate(a) }"
    first, second = program_of(text), program_of(text.replace("ENTRY e {", "ENTRY e {\n  "))
    assert first.tasks == second.tasks
    assert first.values == second.values
    assert first.tasks[0].id == NodeId.derive("hlo", "m", "e", "n")
    assert first.inputs == (ValueId.derive("hlo", "m", "e", "p", 0), ValueId.derive("hlo", "m", "e", "p", 1))


def test_the_source_digest_is_that_of_the_text() -> None:
    text = "HloModule é\nENTRY e { ROOT p = f32[2] parameter(0) }".replace("é", "m")
    program = program_of(text)
    digest = hashlib.blake2b(text.encode(), digest_size=20).hexdigest()
    assert program.source_model_digest == digest
    assert program.header.parent_digests == (digest,)


# -- facts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("f32[3,2] transpose(p), dimensions={1,0}", {"dimensions": (1, 0)}),
        (
            "f32[1,2] slice(p), slice={[0:1], [0:3:2]}",
            {"slice": {"starts": [0, 0], "limits": [1, 3], "strides": [1, 2]}},
        ),
        ("f32[2,5] pad(p, c), padding=0_0x1_1", {"padding": {"low": [0, 1], "high": [0, 1], "interior": [0, 0]}}),
        (
            "f32[1,3] reduce-window(p, c), window={size=2x1 pad=0_0x0_0}, to_apply=add",
            {
                "to_apply": "add",
                "window": {
                    "size": [2, 1],
                    "stride": [1, 1],
                    "low": [0, 0],
                    "high": [0, 0],
                    "lhs_dilation": [1, 1],
                    "rhs_dilation": [1, 1],
                    "reversed": [False, False],
                },
            },
        ),
        (
            "f32[2,3] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (1,)},
        ),
        ("pred[2,3] compare(p, p), direction=LT, type=TOTALORDER", {"direction": "LT", "type": "TOTALORDER"}),
        ("s32[2,3] iota(), iota_dimension=1", {"iota_dimension": 1}),
        (
            'f32[] custom-call(p), custom_call_target="f", backend_config={"a":1}, frontend_attributes={stream="1"}',
            {"custom_call_target": "f", "backend_config": '{"a":1}', "frontend_attributes": (("stream", "1"),)},
        ),
        (
            "f32[2,3] sort(p), dimensions={0}, is_stable=true, to_apply=add",
            {"dimensions": (0,), "is_stable": True, "to_apply": "add"},
        ),
        ("s32[2] constant({1, -2})", {"literal": (1, -2)}),
        ("f32[3] constant({1, -inf, nan})", {"literal": (1.0, "-inf", "nan")}),
        ("f32[] constant(1e-05)", {"literal": (1e-05,)}),
        ("pred[2] constant({1, false})", {"literal": (True, False)}),
        ("c64[] constant((1, -inf))", {"literal": ((1.0, "-inf"),)}),
        ("f32[1000] constant(7)", {"literal": (7.0,)}),
        ("f32[4] constant({...})", {"elided": True}),
        ("u64[] constant(18446744073709551615)", {"literal": (18446744073709551615,)}),
    ],
)
def test_facts_are_plain_data(line: str, facts: dict[str, Any]) -> None:
    program = entry(f"p = f32[2,3] parameter(0)  c = f32[] constant(0)  ROOT r = {line}")
    found = task_of(program, "r").attributes.to_dict()
    wanted = {
        f"hlo.{key}": list(map(_listed, value)) if isinstance(value, tuple) else value for key, value in facts.items()
    }
    assert found == wanted
    kinds = [type(item) for item in task_of(program, "r").attributes.get("hlo.literal", ())]
    assert kinds == [type(item) for item in facts.get("literal", ())]


def _listed(item: Any) -> Any:
    return list(item) if isinstance(item, tuple) else item


def test_where_a_task_comes_from() -> None:
    program = entry(
        'p = f32[2] parameter(0)  ROOT n = f32[2] negate(p), metadata={op_name="jit(f)/neg" source_file="a.py" source_line=3}'
    )
    assert task_of(program, "n").attributes.to_dict() == {"op_name": "jit(f)/neg", "source": "a.py:3"}


def test_header_attributes_are_kept() -> None:
    program = entry(
        "ROOT p = f32[2] parameter(0)", "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }"
    )
    assert program.attributes["hlo.is_scheduled"] is True
    assert program.attributes["hlo.input_output_alias"] == "{ {}: (0, {}, may-alias) }"


def test_types_keep_what_the_shape_says() -> None:
    program = entry(
        "p = f32[<=8,4]{0,1:T(8,128)S(1)} parameter(0)  q = bf16[2,3]{1,0} parameter(1)  ROOT n = s4[5] custom-call(p, q)"
    )
    kind = value_of(program, "p").type
    assert (kind.shape, kind.dtype, kind.layout) == ((8, 4), "f32", (0, 1))
    assert kind.attributes.to_dict() == {"hlo.dynamic": [True, False], "hlo.layout": "T(8,128)S(1)"}
    assert (value_of(program, "q").type.layout, value_of(program, "n").type.dtype) == (None, "s4")


# -- regions -------------------------------------------------------------------------------------------------------

LOOP = """
cond { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[4] all-reduce(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[4]) tuple(j, y) }
"""


def test_a_loop_carries_leaves_and_knows_its_trips() -> None:
    program = entry(
        "x = f32[4] parameter(0)  z = s32[] constant(0)  "
        "t = (s32[], f32[4]) tuple(z, x)  ROOT w = (s32[], f32[4]) while(t), condition=cond, body=body",
        before=ADD + LOOP,
    )
    task = task_of(program, "w")
    assert task.body == Loop(RegionId.derive("hlo", "m", "body"), RegionId.derive("hlo", "m", "cond"), 3)
    assert names_of(program, task.inputs) == ["z", "x"]
    assert names_of(program, task.outputs) == ["w[0]", "w[1]"]
    assert [region.name for region in program.regions] == ["cond", "add", "body"]  # callees first
    body = program.regions[2]
    assert names_of(program, body.outputs) == ["j", "y"]
    assert "hlo.body" not in task.attributes


def test_calls_fusions_and_branches_enter_regions() -> None:
    before = "f { a = f32[4] parameter(0)  b = (f32[4], s32[]) parameter(1)  ROOT c = f32[4] get-tuple-element(b), index=0 }\n"
    before += "g { a = f32[4] parameter(0)  ROOT n = f32[4] negate(a) }\n"
    program = entry(
        """
      p = f32[4] parameter(0)
      i = s32[] parameter(1)
      t = (f32[4], s32[]) tuple(p, i)
      a = f32[4] call(p, t), to_apply=f
      b = f32[4] fusion(a), kind=kLoop, calls=g
      ROOT c = f32[4] conditional(i, b, a, b), branch_computations={g, g, g}
    """,
        before=before,
    )
    assert task_of(program, "a").body == Call(RegionId.derive("hlo", "m", "f"))
    assert task_of(program, "a").operands == (0, 0, 1)
    assert task_of(program, "b").body == Call(RegionId.derive("hlo", "m", "g"))
    assert task_of(program, "b").attributes.to_dict() == {"hlo.kind": "kLoop"}
    g = RegionId.derive("hlo", "m", "g")
    assert task_of(program, "c").body == Branch((g, g, g), (1, 1, 1))
    assert names_of(program, task_of(program, "c").operand_values) == ["i", "b", "a", "b"]
    assert [region.name for region in program.regions] == ["f", "g"]


def test_true_and_false_branches_keep_their_order() -> None:
    before = "no { a = f32[] parameter(0) }\nyes { a = f32[] parameter(0) }\n"
    program = entry(
        "c = pred[] parameter(0)  p = f32[] parameter(1)  ROOT r = f32[] conditional(c, p, p), true_computation=yes, false_computation=no",
        before=before,
    )
    body = task_of(program, "r").body
    assert isinstance(body, Branch)
    assert body.regions == (RegionId.derive("hlo", "m", "yes"), RegionId.derive("hlo", "m", "no"))


def test_what_is_applied_is_a_region_that_an_attribute_names() -> None:
    program = entry(
        "p = f32[4] parameter(0)  z = f32[] constant(0)  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add"
    )
    assert task_of(program, "r").attributes["hlo.to_apply"] == "add"
    assert [region.name for region in program.regions] == ["add"]


def test_computations_that_nothing_uses_are_named() -> None:
    found = import_hlo(ADD + "ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }")
    assert found.program is not None
    assert found.program.attributes["hlo.unreachable"] == ("add",)
    assert [item.code for item in found.diagnostics] == ["hlo.unreachable"]


# -- collectives ---------------------------------------------------------------------------------------------------


def opcode_of(line: str) -> str:
    found = re.search(r" ([a-z-]+)\(", line)
    assert found is not None
    return found.group(1)


GLOBAL_IDS = "channel_id=1, use_global_device_ids=true"
ALL = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("line", "spec"),
    [
        (
            f"f32[4] all-reduce(p), replica_groups={{{{0,1}},{{2,3}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, axes=("axis1",)),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{{{0,2}},{{1,3}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, axes=("axis0",)),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, axes=("devices",)),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{{{0,2,1,3}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, axes=("axis1", "axis0")),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{{{2,3}},{{0,1}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, groups=((2, 3), (0, 1))),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{{{0,3}},{{1,2}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, groups=((0, 3), (1, 2))),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{{{0}},{{1}},{{2}},{{3}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, groups=((0,), (1,), (2,), (3,))),
        ),
        (
            f"f32[4] all-reduce(p), replica_groups={{{{1,3}}}}, {GLOBAL_IDS}, to_apply=add",
            AllReduce((1, 3), 16, ReductionKind.SUM, groups=((1, 3),)),
        ),
        (
            "f32[4] all-reduce(p), replica_groups={{0}}, channel_id=1, to_apply=add",
            AllReduce(ALL, 16, ReductionKind.SUM, axes=("devices",)),
        ),
        (
            f"(f32[4], f32[4]) all-reduce(p, p), replica_groups=[1,4]<=[4], {GLOBAL_IDS}, to_apply=add",
            AllReduce(ALL, 32, ReductionKind.SUM, axes=("devices",)),
        ),
        (
            f"f32[16] all-gather(p), dimensions={{0}}, replica_groups=[1,4]<=[4], {GLOBAL_IDS}",
            AllGather(ALL, 64, axes=("devices",), dim=0),
        ),
        (
            f"f32[1] reduce-scatter(p), dimensions={{0}}, replica_groups=[1,4]<=[4], {GLOBAL_IDS}, to_apply=add",
            ReduceScatter(ALL, 16, ReductionKind.SUM, axes=("devices",), dim=0),
        ),
        (
            "f32[4] all-to-all(p), dimensions={0}, replica_groups={{0,1,2,3}}, channel_id=1",
            AllToAll(ALL, 16, axes=("devices",), split_dim=0, concat_dim=0),
        ),
        (
            "(f32[4], f32[4]) all-to-all(p, p), replica_groups={{0,1},{2,3}}, channel_id=1",
            AllToAll(ALL, 32, axes=("axis1",)),
        ),
        (
            "f32[4] collective-broadcast(p), replica_groups={{1,0},{2,3}}, channel_id=1",
            Broadcast(ALL, 16, 1, groups=((1, 0), (2, 3)), roots=(1, 2)),
        ),
        (
            "f32[4] collective-broadcast(p), replica_groups={{0,1,2,3}}, channel_id=1",
            Broadcast(ALL, 16, 0, axes=("devices",)),
        ),
        (
            "f32[4] collective-permute(p), source_target_pairs={{0,1},{1,1}}, channel_id=1",
            CollectivePermute(ALL, 16, ((0, 1), (1, 1)), "c"),
        ),
        (
            "f32[8] ragged-all-to-all(p, q, i, i, i, i), replica_groups={{0,1,2,3}}, channel_id=1",
            AllToAll(ALL, 32, axes=("devices",)),
        ),
    ],
)
def test_collectives(line: str, spec: CollectiveSpecVariant) -> None:
    program = entry(f"p = f32[4] parameter(0)  q = f32[8] parameter(1)  i = s32[4] parameter(2)  ROOT c = {line}")
    task = task_of(program, "c")
    assert task.body == Collective(spec)
    assert tuple(task.ranks) == tuple(spec.participants)
    assert task.operation == OperationName("hlo", opcode_of(line))


def test_replicas_and_partitions_are_axes() -> None:
    text = (
        "p = f32[4] parameter(0)  "
        "a = f32[4] all-reduce(p), replica_groups={{0,1}}, to_apply=add  "
        "ROOT b = f32[4] all-to-all(a), dimensions={0}, replica_groups={{0,1,2,3}}, channel_id=1"
    )
    program = entry(text, "HloModule m, num_partitions=4, replica_count=2")
    assert [(axis.name, axis.size) for axis in program.mesh.axes] == [("replica", 2), ("partition", 4)]
    first, second = task_of(program, "a").body, task_of(program, "b").body
    assert isinstance(first, Collective)
    assert isinstance(second, Collective)
    assert first.spec == AllReduce(tuple(range(8)), 16, ReductionKind.SUM, axes=("replica",))
    assert second.spec == AllToAll(tuple(range(8)), 16, axes=("partition",), split_dim=0, concat_dim=0)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] maximum(y, x)", ReductionKind.MAX),
        ("x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] minimum(x, y)", ReductionKind.MIN),
        ("x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] multiply(x, y)", ReductionKind.PRODUCT),
        ("x = pred[] parameter(0)  y = pred[] parameter(1)  ROOT z = pred[] and(x, y)", ReductionKind.AND),
        ("x = pred[] parameter(0)  y = pred[] parameter(1)  ROOT z = pred[] or(x, y)", ReductionKind.OR),
        ("x = s32[] parameter(0)  y = s32[] parameter(1)  ROOT z = s32[] xor(x, y)", ReductionKind.XOR),
        (
            "x = bf16[] parameter(0)  y = bf16[] parameter(1)  a = f32[] convert(x)  "
            "b = f32[] convert(y)  s = f32[] add(a, b)  ROOT z = bf16[] convert(s)",
            ReductionKind.SUM,
        ),
        ("x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] subtract(x, y)", ReductionKind.CUSTOM),
        ("x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, x)", ReductionKind.CUSTOM),
        (
            "x = f32[] parameter(0)  y = f32[] parameter(1)  n = f32[] negate(y)  ROOT z = f32[] add(x, n)",
            ReductionKind.CUSTOM,
        ),
        ("x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] copy(x)", ReductionKind.CUSTOM),
    ],
)
def test_reducers(body: str, kind: ReductionKind) -> None:
    program = entry(
        f"p = f32[4] parameter(0)  ROOT c = f32[4] all-reduce(p), replica_groups={{}}, {GLOBAL_IDS}, to_apply=red",
        before=f"red {{ {body} }}\n",
    )
    body_ = task_of(program, "c").body
    assert isinstance(body_, Collective)
    assert isinstance(body_.spec, AllReduce)
    assert body_.spec.reduction is kind
    assert task_of(program, "c").attributes["hlo.to_apply"] == "red"


def test_permute_in_place_moves_slices() -> None:
    program = entry("""
      p = f32[8,8] parameter(0)  o = f32[8,16] parameter(1)  z = s32[] constant(0)  t = (s32[], s32[]) tuple(z, z)
      ROOT c = f32[8,16] collective-permute(p, o, t, t), source_target_pairs={{0,1},{1,0}}, slice_sizes={{2,8}}, channel_id=1
    """)
    body = task_of(program, "c").body
    assert isinstance(body, Collective)
    assert body.spec.message_bytes == 2 * 8 * 4


def test_a_gather_of_everybody_tells_how_many_there_are() -> None:
    program = program_of("e { a = u4[1024,512] parameter(0)  b = u4[1024,4096] all-gather(a), dimensions={1} }")
    assert program.mesh.size == 8
    body = task_of(program, "b").body
    assert isinstance(body, Collective)
    assert body.spec.message_bytes == 1024 * 4096 // 2


# -- asynchronous operations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "done", "collective", "outputs"),
    [
        ("f32[4] all-reduce-start(p), replica_groups={}, to_apply=add", "f32[4] all-reduce-done(s)", "s", ["s"]),
        (
            "(f32[4], f32[16]) all-gather-start(p), dimensions={0}, replica_groups={}",
            "f32[16] all-gather-done(s)",
            "s",
            ["s"],
        ),
        (
            "((f32[4], f32[4]), (f32[16], f32[16])) all-gather-start(p, p), dimensions={0}, replica_groups={}",
            "(f32[16], f32[16]) all-gather-done(s)",
            "s",
            ["s[0]", "s[1]"],
        ),
        (
            "(f32[4], f32[4]) collective-permute-start(p), source_target_pairs={{0,1}}",
            "f32[4] collective-permute-done(s)",
            "s",
            ["s"],
        ),
        (
            "(f32[4], f32[4], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}",
            "f32[4] collective-permute-done(s)",
            "s",
            ["s"],
        ),
        (
            "f32[4] collective-permute-start(p), source_target_pairs={{0,1}}",
            "f32[4] collective-permute-done(s)",
            "s",
            ["s"],
        ),
        (
            "((f32[4], f32[4]), (f32[4], f32[4])) collective-permute-start(p, p), source_target_pairs={{0,1}}",
            "(f32[4], f32[4]) collective-permute-done(s)",
            "s",
            ["s[0]", "s[1]"],
        ),
        (
            "((f32[4]), f32[1]) reduce-scatter-start(p), dimensions={0}, replica_groups={}, to_apply=add",
            "f32[1] reduce-scatter-done(s)",
            "reduce-scatter",
            ["reduce-scatter"],
        ),
        (
            "((f32[4]), f32[4], u32[]) all-to-all-start(p), dimensions={0}, replica_groups={}",
            "f32[4] all-to-all-done(s)",
            "all-to-all",
            ["all-to-all"],
        ),
        ("((f32[4]), f32[4]) async-start(p), calls=wrapped", "f32[4] async-done(s), calls=wrapped", "inner", ["inner"]),
    ],
)
def test_started_collectives(start: str, done: str, collective: str, outputs: list[str]) -> None:
    before = (
        ADD
        + "wrapped { q = f32[4] parameter(0)  ROOT inner = f32[4] all-to-all(q), dimensions={0}, replica_groups={} }\n"
    )
    program = entry(
        f"p = f32[4] parameter(0)  s = {start}  ROOT d = {done}",
        "HloModule m, replica_count=4",
        before if "wrapped" in start else ADD,
    )
    assert [task.name for task in program.tasks] == [collective, "d"]
    first, last = program.tasks
    assert isinstance(first.body, Collective)
    assert names_of(program, first.outputs) == outputs
    assert isinstance(last.body, Control)
    assert last.completes == (first.id,)
    assert last.dependencies == (first.id,)
    assert last.inputs == first.outputs
    assert "wrapped" not in [region.name for region in program.regions]
    if collective != "s":
        assert first.attributes["hlo.start"] == "s"
        assert first.attributes["computation"] in ("wrapped", "async_wrapped")


def test_a_started_copy_yields_its_first_part() -> None:
    program = entry(
        "p = f32[4]{0} parameter(0)  s = (f32[4]{0:S(1)}, f32[4]{0}, u32[]) copy-start(p)  ROOT d = f32[4]{0:S(1)} copy-done(s)"
    )
    first, last = program.tasks
    assert isinstance(first.body, LocalCompute)
    assert names_of(program, first.outputs) == ["s"]
    assert last.completes == (first.id,)


def test_other_started_ops_call_their_computation() -> None:
    program = entry(
        'p = f32[4] parameter(0)  s = ((f32[4]), f32[8], s32[]) custom-call-start(p), custom_call_target="f"  '
        "u = ((f32[4]), f32[8], s32[]) custom-call-update(s)  ROOT d = f32[8] custom-call-done(u)"
    )
    assert [(task.name, type(task.body)) for task in program.tasks] == [("s", Call), ("u", Control), ("d", Control)]
    assert program.tasks[2].completes == (program.tasks[0].id,)
    region = program.regions[-1]
    assert (region.name, [str(task.operation) for task in region.tasks]) == ("async_wrapped", ["hlo.custom-call"])


def test_an_op_runs_where_its_last_operand_is_bound() -> None:
    program = entry(
        """
      p = f32[4] parameter(0)  q = f32[4] parameter(1)
      s = ((f32[4]), f32[4], s32[]) async-start(p), calls=two
      u = ((f32[4], f32[4]), f32[4], s32[]) async-update(s, q)
      ROOT d = f32[4] async-done(u)
    """,
        before="two { a = f32[4] parameter(0)  b = f32[4] parameter(1)  ROOT c = f32[4] subtract(a, b) }\n",
    )
    assert [(task.name, type(task.body)) for task in program.tasks] == [("s", Control), ("u", Call), ("d", Control)]
    assert names_of(program, task_of(program, "u").inputs) == ["p", "q"]
    assert task_of(program, "d").completes == (task_of(program, "u").id,)


def test_a_handle_that_a_loop_carries_consists_of_values() -> None:
    loop = """
cond { s = (s32[], (f32[4], f32[4], u32[], u32[])) parameter(0)  ROOT c = pred[] constant(false) }
body { s = (s32[], (f32[4], f32[4], u32[], u32[])) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = (f32[4], f32[4], u32[], u32[]) get-tuple-element(s), index=1
  d = f32[4] collective-permute-done(h)
  n = (f32[4], f32[4], u32[], u32[]) collective-permute-start(d), source_target_pairs={{0,1},{1,0}}, channel_id=1
  ROOT t = (s32[], (f32[4], f32[4], u32[], u32[])) tuple(i, n) }
"""
    program = entry(
        """
      p = f32[4] parameter(0)  z = s32[] constant(0)
      s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}, channel_id=1
      t = (s32[], (f32[4], f32[4], u32[], u32[])) tuple(z, s)
      w = (s32[], (f32[4], f32[4], u32[], u32[])) while(t), condition=cond, body=body
      h = (f32[4], f32[4], u32[], u32[]) get-tuple-element(w), index=1
      ROOT d = f32[4] collective-permute-done(h)
    """,
        before=loop,
    )
    assert names_of(program, task_of(program, "w").inputs) == ["z", "p", "s", "s#context[0]", "s#context[1]"]
    assert task_of(program, "d").completes == ()
    assert names_of(program, task_of(program, "d").inputs) == ["w[1]", "w[2]", "w[3]", "w[4]"]


def test_send_and_receive_are_a_permute() -> None:
    pairs = 'channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}'
    program = entry(f"""
      p = f32[4] parameter(0)  t = token[] after-all()
      r = (f32[4], u32[], token[]) recv(t), {pairs}
      s = (f32[4], u32[], token[]) send(p, t), {pairs}, control-predecessors={{r}}
      rd = (f32[4], token[]) recv-done(r), channel_id=1
      sd = token[] send-done(s), channel_id=1
      ROOT d = f32[4] get-tuple-element(rd), index=0
    """)
    send = task_of(program, "s")
    assert send.body == Collective(CollectivePermute(ALL, 16, ((0, 1), (1, 2)), "1"))
    done = task_of(program, "rd")
    assert done.completes == (task_of(program, "r").id, send.id)
    assert send.outputs[0] in done.inputs
    assert isinstance(task_of(program, "r").body, Control)
    assert task_of(program, "sd").completes == (send.id,)


def test_transfers_to_the_host_are_control() -> None:
    program = entry("""
      p = f32[4] parameter(0)  t = token[] after-all()
      s = (f32[4], u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true
      ROOT d = token[] send-done(s), channel_id=1, is_host_transfer=true
    """)
    assert [(task.name, type(task.body)) for task in program.tasks] == [("t", Control), ("s", Control), ("d", Control)]


# -- mesh and layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "lines", "axes"),
    [
        ("HloModule m, num_partitions=8", "ROOT q = f32[8] negate(p)", [("devices", 8)]),
        ("HloModule m", "ROOT q = f32[8] negate(p)", [("devices", 1)]),
        (
            "HloModule m, num_partitions=8",
            "ROOT q = f32[8] all-to-all(p), dimensions={0}, channel_id=1, replica_groups=mesh['dp'=2,'tp'=4] {'tp'}",
            [("dp", 2), ("tp", 4)],
        ),
        (
            "HloModule m, num_partitions=8",
            "ROOT q = f32[8] all-to-all(p), dimensions={0}, channel_id=1, replica_groups=mesh['dp'=2,'tp'=4] {'tp':(2)2}",
            [("dp", 2), ("tp:(1)2", 2), ("tp:(2)2", 2)],
        ),
        (
            "HloModule m, num_partitions=8",
            "ROOT q = f32[8] all-to-all(p), dimensions={0}, channel_id=1, replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_1'}",
            [("axis0", 2), ("axis1", 4)],
        ),
        (
            "HloModule m, num_partitions=8",
            "ROOT q = f32[8] all-to-all(p), dimensions={0}, channel_id=1, replica_groups=mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'x'}",
            [("y", 2), ("x", 4)],
        ),
        (
            "HloModule m, num_partitions=8",
            "ROOT q = f32[8] copy(p), sharding={mesh['x'=2,'one'=1,'y'=4], [{'x'}]}",
            [("x", 2), ("y", 4), ("one", 1)],
        ),
        (
            "HloModule m, num_partitions=8",
            "ROOT q = f32[8] copy(p), sharding={devices=[2,4]<=[8] last_tile_dim_replicate}",
            [("axis0", 2), ("axis1", 4)],
        ),
        (
            "HloModule m, num_partitions=12",
            "a = f32[8] copy(p), sharding={devices=[3,4]<=[12] last_tile_dim_replicate}  "
            "ROOT q = f32[8] copy(a), sharding={devices=[2,6]<=[12] last_tile_dim_replicate}",
            [("axis0", 3), ("axis1", 4)],
        ),
        (
            'HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["dp"=2, "tp"=4]>}}',
            "ROOT q = f32[8] negate(p)",
            [("dp", 2), ("tp", 4)],
        ),
    ],
)
def test_meshes(header: str, lines: str, axes: list[tuple[str, int]]) -> None:
    program = entry(f"p = f32[8] parameter(0)  {lines}", header, before="")
    assert [(axis.name, axis.size) for axis in program.mesh.axes] == axes


def test_per_device_values_vary_and_parameters_know_their_global_shape() -> None:
    program = entry(
        "p = f32[2,8] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}  "
        "r = f32[2] parameter(1), sharding={replicated}  v = f32[3] parameter(2)  ROOT n = f32[2,8] negate(p)"
    )
    p, r, v, n = (value_of(program, name) for name in "prvn")
    assert (p.type.shape, p.sharding) == ((4, 8), ShardingSpec((("axis0",), ()), ("axis1",)))
    assert p.attributes.to_dict() == {"hlo.sharding": "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}
    assert (r.type.shape, r.sharding) == ((2,), ShardingSpec(((),), ("axis0", "axis1")))
    assert v.sharding == ShardingSpec(((),), varying=("axis0", "axis1"))
    assert (n.type.shape, n.sharding) == ((2, 8), ShardingSpec(((), ()), varying=("axis0", "axis1")))
    assert (p.role, n.role) == (ValueRole.INPUT, ValueRole.ACTIVATION)
    assert program.attributes["hlo.form"] == "per_device"


@pytest.mark.parametrize(
    ("sharding", "spec"),
    [
        ("{devices=[2,2]<=[4]}", ShardingSpec((("axis0",), ("axis1",)), sizes=(ShardSizes(0, (4, 3)),))),
        ("{devices=[2,2]<=[2,2]T(1,0)}", ShardingSpec((("axis1",), ("axis0",)), sizes=(ShardSizes(0, (4, 3)),))),
        ("{devices=[4,1]<=[4]}", ShardingSpec((("devices",), ()), sizes=(ShardSizes(0, (2, 2, 2, 1)),))),
        ("{devices=[4,1]0,2,1,3}", ShardingSpec((("axis1", "axis0"), ()), sizes=(ShardSizes(0, (2, 2, 2, 1)),))),
        ("{devices=[4,1]0,1,3,2}", ShardingSpec(((), ()), varying=("devices",))),
        ("{replicated}", ShardingSpec(((), ()), ("devices",))),
        ("{manual}", ShardingSpec(((), ()), varying=("devices",))),
        ("{maximal device=2}", ShardingSpec(((), ()), varying=("devices",))),
        ("{unreduced}", ShardingSpec(((), ()), partial=Partial(("devices",), ReductionKind.SUM))),
        (
            "{devices=[1,2,2]<=[4] last_tile_dims={unreduced}}",
            ShardingSpec(((), ("axis0",)), partial=Partial(("axis1",), ReductionKind.SUM)),
        ),
        ("{devices=[1,2,2]<=[4] last_tile_dims={manual}}", ShardingSpec(((), ("axis0",)), varying=("axis1",))),
        (
            "{mesh['a'=2,'b'=2], [{'b'}, {}], unreduced=max{'a'}}",
            ShardingSpec((("b",), ()), partial=Partial(("a",), ReductionKind.MAX), sizes=(ShardSizes(0, (4, 3)),)),
        ),
        ("{mesh['a'=2,'b'=2], [{'a', 'b'}]}", ShardingSpec((("a", "b"), ()), sizes=(ShardSizes(0, (2, 2, 2, 1)),))),
    ],
)
def test_layouts_before_the_partitioner(sharding: str, spec: ShardingSpec) -> None:
    program = entry(
        f"p = f32[7,8] parameter(0)  a = f32[7,8] negate(p), sharding={sharding}  ROOT n = f32[7,8] abs(a), sharding={sharding}",
        before="",
    )
    assert program.attributes["hlo.form"] == "global"
    value = value_of(program, "n")
    assert value.type.shape == (7, 8)
    assert value.sharding == spec


def test_shardings_of_a_tuple_result_are_kept() -> None:
    program = entry(
        "p = f32[8] parameter(0)  n = f32[8] negate(p)  ROOT t = (f32[8], f32[8]) tuple(n, p), sharding={{replicated}, {devices=[4]<=[4]}}",
        before="",
    )
    assert program.attributes["hlo.output_shardings"] == ("{replicated}", "{devices=[4]<=[4]}")


def test_one_rank_is_no_layout() -> None:
    program = entry("p = f32[8] parameter(0)  ROOT n = f32[8] negate(p)", "HloModule m", before="")
    assert value_of(program, "n").sharding == ShardingSpec(((),), ("devices",))


# -- size ----------------------------------------------------------------------------------------------------------


def test_two_thousand_million_ranks_cost_nothing() -> None:
    program = entry(
        f"p = f32[4] parameter(0)  ROOT a = f32[4] all-reduce(p), replica_groups={{}}, {GLOBAL_IDS}, to_apply=add",
        "HloModule m, num_partitions=2000000000",
    )
    body = task_of(program, "a").body
    assert isinstance(body, Collective)
    assert body.spec == AllReduce(RankRange(0, 2_000_000_000), 16, ReductionKind.SUM, axes=("devices",))
    assert program.mesh.size == 2_000_000_000


@pytest.mark.parametrize(
    "line",
    [
        f"all-gather(p), dimensions={{0}}, replica_groups=[1,2000000000]<=[2000000000], {GLOBAL_IDS}",
        f"all-reduce(p), replica_groups=mesh['x'=2000000000] {{'x'}}, {GLOBAL_IDS}, to_apply=add",
        "all-to-all(p), dimensions={0}, replica_groups={{0,1}}",
        "collective-permute(p), source_target_pairs={{0,0}}",
    ],
)
def test_lists_of_too_many_ranks_are_refused(line: str) -> None:
    found = import_hlo(
        f"HloModule m, num_partitions=2000000000\n{ADD}ENTRY e {{ p = f32[4] parameter(0)\n  ROOT a = f32[4] {line} }}"
    )
    if found.program is None:
        assert [item.code for item in found.diagnostics.errors] in (["hlo.too_many_ranks"], ["hlo.device_count"])
        assert found.diagnostics.errors[0].path[:2] == ("line", "4")
    else:
        pytest.fail("groups over two thousand million ranks were listed")


def test_many_short_texts_of_many_ranks_are_refused() -> None:
    ranks = MAX_RANKS
    lines = "".join(
        f"a{bit} = f32[4] all-reduce(p), replica_groups=[{ranks >> bit},{1 << bit}]<=[{ranks}], {GLOBAL_IDS}, to_apply=add\n"
        for bit in range(1, 10)
    )
    text = f"HloModule m, num_partitions={ranks}\n{ADD}ENTRY e {{\np = f32[4] parameter(0)\n{lines}}}"
    found = import_hlo(text)
    assert [(item.code, item.path[1]) for item in found.diagnostics.errors] == [("hlo.too_many_ranks", "13")]


def test_equal_things_are_one_object() -> None:
    lines = "".join(
        f"a{i} = f32[4] all-reduce(p), replica_groups=[2,2]<=[4], {GLOBAL_IDS}, to_apply=add\n" for i in range(3)
    )
    program = entry(f"p = f32[4] parameter(0)\n{lines}ROOT r = f32[4] negate(a0)")
    specs = [task.body.spec for task in program.tasks if isinstance(task.body, Collective)]
    assert len({id(spec.participants) for spec in specs}) == 1
    assert len({id(value.sharding) for value in program.values}) == 1
    assert len({id(value.type) for value in program.values}) == 1
    assert len({id(task.lineage) for task in program.tasks}) == 1
