"""The structural verifier: every code with a faulty program and a clean neighbour, in the documented order."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from dtir.ir import (
    Add,
    AllGather,
    AllReduce,
    BindingAxis,
    Branch,
    Broadcast,
    Call,
    Collective,
    CollectivePermute,
    Control,
    DistributedTaskIR,
    Effect,
    EffectKind,
    EmptySemantic,
    IRVerificationError,
    IssueList,
    Lineage,
    LocalCompute,
    Loop,
    MeshAxis,
    NodeId,
    OperationName,
    PeerTransfer,
    PointToPoint,
    ProgramBuilder,
    RankRange,
    ReductionKind,
    Region,
    RegionId,
    SchemaVersion,
    ShardingSpec,
    Symbol,
    TensorType,
    ValueId,
    ValueRole,
    make_header,
)
from dtir.ir.codes import CODES
from dtir.schema import Err, FrozenDict, Ok, Severity
from tests.helpers.programs import SOURCE_DIGEST, mesh_of, node_id, program, region_id, task, value, value_id
from tests.helpers.strategies import programs

MESH = mesh_of(dp=2, tp=4)
GOOD = program(MESH)
X, H, Y = (str(value_id(name)) for name in "xhy")
MUL, SUM = str(node_id("mul.0")), str(node_id("sum.1"))
NOWHERE = ValueId("f" * 32)

Finding = tuple[str, str, tuple[str, ...]]


def findings(faulty: DistributedTaskIR) -> list[Finding]:
    """Code, path and subject of every finding."""
    return [(item.code, ".".join(item.path), item.subject) for item in faulty.diagnostics()]


def with_value(index: int, **fields: Any) -> DistributedTaskIR:
    values = list(GOOD.values)
    values[index] = replace(values[index], **fields)
    return replace(GOOD, values=tuple(values))


def with_task(index: int, **fields: Any) -> DistributedTaskIR:
    tasks = list(GOOD.tasks)
    tasks[index] = replace(tasks[index], **fields)
    return replace(GOOD, tasks=tuple(tasks))


def with_spec(**fields: Any) -> DistributedTaskIR:
    body: Any = GOOD.tasks[1].body
    return with_task(1, body=Collective(replace(body.spec, **fields)))


def header(**fields: Any) -> Any:
    return replace(GOOD.header, **fields)


class Foreign(Enum):
    ONE = 1


BIG = 10**5000

FAULTS: dict[str, tuple[DistributedTaskIR, list[Finding]]] = {
    "schema name": (
        replace(GOOD, header=header(schema_name="blueprinting.distributed-task")),
        [("schema.name", "header.schema_name", ())],
    ),
    "schema version": (
        replace(GOOD, header=header(schema_version=SchemaVersion(9, 9, 9))),
        [("schema.version", "header.schema_version", ())],
    ),
    "feature epoch": (
        replace(GOOD, header=header(feature_set=frozenset({"x"}))),
        [("schema.feature_epoch", "header.feature_set", ())],
    ),
    "foreign object": (
        replace(GOOD, attributes=FrozenDict({"a": object()})),
        [("serialization.unsupported", "<snapshot>", ())],
    ),
    "foreign enum": (
        with_value(0, attributes=FrozenDict({"a": (Foreign.ONE,)})),
        [("serialization.unsupported", "<snapshot>", ())],
    ),
    "nan": (
        with_task(0, attributes=FrozenDict({"a": frozenset({float("nan")})})),
        [("serialization.unsupported", "<snapshot>", ())],
    ),
    "surrogate in a name": (replace(GOOD, name="\ud800"), [("serialization.unsupported", "<snapshot>", ())]),
    "surrogate in a key": (
        with_value(1, attributes=FrozenDict({"\ud800": 1})),
        [("serialization.unsupported", "<snapshot>", ())],
    ),
    "surrogate in a transform": (
        with_task(0, lineage=replace(GOOD.tasks[0].lineage, transform="\ud800")),
        [("serialization.unsupported", "<snapshot>", ())],
    ),
    "endless digits": (with_spec(message_bytes=BIG), [("serialization.unsupported", "<snapshot>", ())]),
    "name": (replace(GOOD, name=""), [("distributed.name", "name", ())]),
    "no tasks": (
        replace(GOOD, tasks=()),
        [("distributed.empty", "tasks", ()), ("dataflow.undefined_output", "outputs", (Y,))],
    ),
    "no values": (
        replace(GOOD, values=(), tasks=(task("a", MESH, LocalCompute()),), inputs=(), outputs=()),
        [("distributed.empty", "tasks", ())],
    ),
    "source digest": (
        replace(GOOD, source_model_digest="llama"),
        [("distributed.source_digest", "source_model_digest", ())],
    ),
    "parent digest": (
        replace(GOOD, header=header(parent_digests=("1" * 40,))),
        [("distributed.parent_digest", "header.parent_digests", ())],
    ),
    "duplicate value id": (
        replace(GOOD, values=(*GOOD.values, GOOD.values[0])),
        [("id.duplicate", "values.3.id", (X,))],
    ),
    "duplicate task id": (
        replace(GOOD, tasks=(*GOOD.tasks, task("mul.0", MESH, LocalCompute()))),
        [("id.duplicate", "tasks.2.id", (MUL,))],
    ),
    "duplicate dependency": (
        with_task(1, dependencies=(node_id("mul.0"),) * 2),
        [("dag.duplicate_dependency", "tasks.1.dependencies", (SUM,))],
    ),
    "self dependency": (
        with_task(1, dependencies=(node_id("sum.1"),)),
        [
            ("dag.self_dependency", "tasks.1.dependencies", (SUM, SUM)),
            ("dag.not_topological", "tasks.1.dependencies", (SUM, SUM)),
        ],
    ),
    "unknown dependency": (
        with_task(1, dependencies=(node_id("zzz"),)),
        [("reference.unknown", "tasks.1.dependencies", (SUM, str(node_id("zzz"))))],
    ),
    "dependency on a later task": (
        with_task(0, dependencies=(node_id("sum.1"),)),
        [("dag.not_topological", "tasks.0.dependencies", (MUL, SUM))],
    ),
    "unknown program input": (
        replace(GOOD, inputs=(value_id("x"), NOWHERE)),
        [("reference.unknown", "inputs", (str(NOWHERE),))],
    ),
    "unknown program output": (
        replace(GOOD, outputs=(value_id("y"), NOWHERE)),
        [("reference.unknown", "outputs", (str(NOWHERE),))],
    ),
    "duplicate program input": (
        replace(GOOD, inputs=(value_id("x"),) * 2),
        [("distributed.duplicate_input", "inputs", (X,))],
    ),
    "duplicate program output": (
        replace(GOOD, outputs=(value_id("y"),) * 3),
        [("distributed.duplicate_output", "outputs", (Y,))],
    ),
    "sharding rank": (
        with_value(0, sharding=ShardingSpec(((),), ("dp", "tp"))),
        [("sharding.rank", "values.0.sharding.dimension_axes", (X,))],
    ),
    "axis reuse": (
        with_value(0, sharding=ShardingSpec((("tp",), ()), ("dp", "tp"))),
        [("sharding.axis_reuse", "values.0.sharding", (X, "tp"))],
    ),
    "unknown axis": (
        with_value(0, sharding=ShardingSpec((("ep",), ()), ("dp",))),
        [("sharding.unknown_axis", "values.0.sharding", (X, "ep"))],
    ),
    "no owners": (with_value(0, owners=()), [("ownership.invalid", "values.0.owners", (X,))]),
    "owners twice": (with_value(0, owners=(0, 0)), [("ownership.invalid", "values.0.owners", (X,))]),
    "owner outside": (
        with_value(0, owners=(0, 8, 9)),
        [("rank.unknown", "values.0.owners", (X,)), ("rank.unknown", "values.0.owners", (X,))],
    ),
    "owner of endless digits": (
        with_value(0, owners=(BIG,)),
        [("serialization.unsupported", "<snapshot>", ()), ("rank.unknown", "values.0.owners", (X,))],
    ),
    "run of owners outside": (with_value(0, owners=RankRange(0, 10**9)), [("rank.unknown", "values.0.owners", (X,))]),
    "reserved value attribute": (
        with_value(0, attributes=FrozenDict({"queue": 1})),
        [("attribute.reserved", "values.0.attributes.queue", ())],
    ),
    "reserved type attribute": (
        with_value(0, type=TensorType((4, 8), "f32", None, FrozenDict({"x": {"Stream": 1}}))),
        [("attribute.reserved", "values.0.type.attributes.x.Stream", ())],
    ),
    "no ranks": (
        with_task(0, ranks=()),
        [("rank.invalid", "tasks.0.ranks", (MUL,))],
    ),
    "ranks twice": (with_task(0, ranks=(0, 0)), [("rank.invalid", "tasks.0.ranks", (MUL,))]),
    "rank outside": (with_task(0, ranks=(0, 8)), [("rank.unknown", "tasks.0.ranks", (MUL,))]),
    "target dialect": (
        with_task(1, operation=OperationName("NCCL", "all_reduce")),
        [("distributed.target_dialect", "tasks.1.operation", (SUM,))],
    ),
    "unknown task input": (
        with_task(1, inputs=(NOWHERE,)),
        [("reference.unknown", "tasks.1.inputs", (str(NOWHERE),))],
    ),
    "duplicate task input": (
        with_task(1, inputs=(value_id("h"),) * 2),
        [("task.duplicate_input", "tasks.1.inputs", (SUM, H))],
    ),
    "use before definition": (
        with_task(0, inputs=(value_id("y"),)),
        [("dataflow.use_before_definition", "tasks.0.inputs", (MUL, Y))],
    ),
    "unknown task output": (
        with_task(1, outputs=(value_id("y"), NOWHERE)),
        [("reference.unknown", "tasks.1.outputs", (str(NOWHERE),))],
    ),
    "duplicate task output": (
        with_task(1, outputs=(value_id("y"),) * 2),
        [
            ("task.duplicate_output", "tasks.1.outputs", (SUM, Y)),
            ("dataflow.multiple_definition", "tasks.1.outputs", (SUM, Y)),
        ],
    ),
    "multiple definition": (
        with_task(1, outputs=(value_id("h"), value_id("y"))),
        [("dataflow.multiple_definition", "tasks.1.outputs", (SUM, H))],
    ),
    "redefined input": (
        with_task(0, outputs=(value_id("x"), value_id("h"))),
        [("dataflow.multiple_definition", "tasks.0.outputs", (MUL, X))],
    ),
    "participants": (
        with_spec(participants=(0, 1)),
        [("collective.participants", "tasks.1.body", (SUM,))],
    ),
    "groups": (
        with_spec(groups=((0, 1, 2, 3), (4, 5, 6, 6))),
        [("collective.participants", "tasks.1.body.groups", (SUM,))],
    ),
    "collective axis": (with_spec(axes=("ep",)), [("sharding.unknown_axis", "tasks.1.body.axes", (SUM, "ep"))]),
    "permute pairs": (
        with_task(1, body=Collective(CollectivePermute(tuple(range(8)), 8, ((0, 1), (0, 9))))),
        [("peer.endpoints", "tasks.1.body.pairs.1", (SUM,))],
    ),
    "endpoints": (
        with_task(1, body=PointToPoint(PeerTransfer(0, 1, 8))),
        [("peer.endpoints", "tasks.1.body", (SUM,))],
    ),
    "negative transfer": (
        with_task(1, body=PointToPoint(PeerTransfer(0, 1, -8)), ranks=(1, 0)),
        [("scalar.negative", "tasks.1.body.message_bytes", (SUM,))],
    ),
    "negative collective": (
        with_spec(message_bytes=-0.5),
        [("scalar.negative", "tasks.1.body.message_bytes", (SUM,))],
    ),
    "reserved task attribute": (
        with_task(0, attributes=FrozenDict({"hints": ({"Latency": {"queue": 1}},), "a": 1, "route": 1})),
        [
            ("attribute.reserved", "tasks.0.attributes.hints.0.Latency", ()),
            ("attribute.reserved", "tasks.0.attributes.hints.0.Latency.queue", ()),
            ("attribute.reserved", "tasks.0.attributes.route", ()),
        ],
    ),
    "undefined output": (
        with_task(1, outputs=()),
        [("dataflow.undefined_output", "outputs", (Y,))],
    ),
    "reserved program attribute": (
        replace(GOOD, attributes=FrozenDict({"scope": 1})),
        [("attribute.reserved", "attributes.scope", ())],
    ),
    "issue rank": (
        replace(GOOD, issue=(IssueList(8, ((node_id("mul.0"),),)),)),
        [("rank.unknown", "issue.0.rank", ())],
    ),
    "issue of an unknown task": (
        replace(GOOD, issue=(IssueList(0, ((node_id("mul.0"),), (node_id("zzz"),))),)),
        [("reference.unknown", "issue.0.steps.1", (str(node_id("zzz")),))],
    ),
}

NEIGHBOURS: dict[str, DistributedTaskIR] = {
    "as it is": GOOD,
    "other producer and features": replace(
        GOOD, header=header(producer_version="9", feature_set=GOOD.header.feature_set | {"x"})
    ),
    "further parents": replace(GOOD, header=header(parent_digests=("1" * 40, SOURCE_DIGEST))),
    "every kind of open data": replace(
        GOOD, attributes=FrozenDict({"a": (1, 1.5, None, b"x", {"b"}, NodeId.derive(1), "é")})
    ),
    "a parameter among the inputs": replace(
        with_task(1, inputs=(value_id("h"), value_id("w"))),
        values=(*GOOD.values, value("w", MESH, role=ValueRole.PARAMETER)),
        inputs=(value_id("x"), value_id("w")),
    ),
    "an output that is an input": replace(GOOD, outputs=(value_id("y"), value_id("x"))),
    "axes split and replicated": with_value(0, sharding=ShardingSpec((("dp", "tp"), ()))),
    "a layout that names no axis": with_value(0, sharding=ShardingSpec(((), ()))),
    "one owner": with_value(0, owners=(7,)),
    "ranks in another order": with_task(1, ranks=(7, 6, 5, 4, 3, 2, 1, 0)),
    "a run of ranks": with_spec(participants=RankRange(0, 8)),
    "groups that cover": with_spec(groups=((0, 2, 4, 6), RankRange(1, 8, 2))),
    "a symbolic size": with_spec(message_bytes=Symbol("b", BindingAxis.WORKLOAD) - 1),
    "a size of zero": with_spec(message_bytes=0),
    "a transfer between its ends": with_task(1, body=PointToPoint(PeerTransfer(5, 2, 8)), ranks=(2, 5)),
    "a root among the participants": with_task(1, body=Collective(Broadcast(tuple(range(8)), 8, 7))),
    "a dialect of no target": with_task(0, operation=OperationName("hip", "x")),
    "names near reserved ones": with_task(0, attributes=FrozenDict({"queues": 1, "a": ("queue",), "durations": {}})),
    "a fractional dim": with_value(0, type=TensorType((2.5, 8), "f32")),
    # What the structural verifier does not judge; other rules do.
    "a task without a dependency on its producer": with_task(1, dependencies=()),
    "a dim that its axis does not divide": with_value(
        0, type=TensorType((7, 8), "f32"), sharding=ShardingSpec((("dp",), ()), ("tp",))
    ),
    "a split value on one rank": with_value(0, sharding=ShardingSpec((("tp",), ()), ("dp",)), owners=(0,)),
    "a collective without dataflow": replace(with_task(1, inputs=(), outputs=()), outputs=(value_id("h"),)),
    "a control task with dataflow": with_task(0, body=Control()),
    "a reader on other ranks": with_task(0, ranks=(3,)),
    "participants that are no fibre": with_task(
        1, ranks=(0, 5, 6), body=Collective(AllReduce((0, 5, 6), 1, ReductionKind.SUM))
    ),
    "a lineage to nowhere": with_value(0, lineage=Lineage.lowered("pass", (NOWHERE,)), source_value=NOWHERE),
    "duplicate effects": with_task(0, effects=(Effect(EffectKind.READ, "cache"),) * 2),
    "a value that nobody uses": replace(GOOD, values=(*GOOD.values, value("unused", MESH))),
    "training semantics": with_task(0, semantic=EmptySemantic("other")),
    "an issue list": replace(GOOD, issue=(IssueList(7, ((node_id("mul.0"), node_id("sum.1")),)),)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    faulty, expected = FAULTS[name]
    assert findings(faulty) == expected
    assert all(item.severity is Severity.ERROR for item in faulty.diagnostics())
    assert all(item.hint for item in faulty.diagnostics())
    assert isinstance(faulty.verify(), Err)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours(name: str) -> None:
    clean = NEIGHBOURS[name]
    assert findings(clean) == []
    match clean.verify():
        case Ok(verified, diagnostics):
            assert verified is clean
            assert not diagnostics
        case Err(error):
            pytest.fail(str(error))
    clean.require_valid()


MESSAGES = {
    "schema name": "expected 'dtir.distributed-task', got 'blueprinting.distributed-task'",
    "schema version": "expected 1.0.0, got 9.9.9",
    "feature epoch": "missing required feature epoch(s): typed-semantics",
    "foreign object": "unsupported canonical value: builtins.object",
    "nan": "canonical IR does not permit NaN or infinity",
    "surrogate in a name": "text with a lone surrogate U+D800 cannot be encoded",
    "name": "distributed program name must not be empty",
    "no values": "distributed program requires tasks and values",
    "source digest": "source_model_digest must be a canonical digest",
    "parent digest": "source model digest must be retained in header.parent_digests",
    "duplicate value id": f"duplicate identifier {X}",
    "duplicate dependency": "dependencies must be unique",
    "self dependency": f"{SUM} depends on itself",
    "unknown dependency": f"dependency {node_id('zzz')} is not declared",
    "dependency on a later task": f"dependency {SUM} must precede {MUL}",
    "unknown program input": f"unknown reference {NOWHERE}",
    "duplicate program input": "distributed inputs must be unique",
    "duplicate program output": "distributed outputs must be unique",
    "sharding rank": "sharding dimension count must equal tensor rank",
    "axis reuse": "a mesh axis may appear only once",
    "unknown axis": "unknown mesh axis 'ep'",
    "no owners": "owners must be non-empty and unique",
    "owner outside": "owner rank 8 is outside the logical mesh",
    "owner of endless digits": "an integer of 16610 bits has too many digits",
    "rank outside": "task rank 8 is outside the logical mesh",
    "ranks twice": "task ranks must be non-empty and unique",
    "target dialect": "target dialect 'NCCL' is illegal in DistributedTaskIR",
    "duplicate task input": "task inputs must be unique",
    "duplicate task output": "task outputs must be unique",
    "use before definition": f"value {Y} is not yet defined",
    "multiple definition": f"value {H} has multiple definitions",
    "participants": "collective participants must equal task ranks",
    "endpoints": "peer transfer endpoints must equal task ranks",
    "negative collective": "quantity must not be negative",
    "undefined output": f"distributed output {Y} is not defined",
    "reserved value attribute": "'queue' is a semantic field and is illegal in this IR layer",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    assert FAULTS[name][0].diagnostics().diagnostics[0].message == MESSAGES[name]


def test_every_code_has_a_faulty_case() -> None:
    # Constructors refuse these first; serialization.* codes of reading are tested with the readers.
    unreachable = {"collective.root", "task.body.unknown", "scalar.invalid", "scalar.nonfinite"}
    covered = {code for _, expected in FAULTS.values() for code, _, _ in expected}
    covered |= {code for _, expected in REGION_FAULTS.values() for code, _, _ in expected}
    assert {entry.code for entry in CODES} - unreachable <= covered


def test_findings_come_in_the_documented_order() -> None:
    everything = replace(
        GOOD,
        name="",
        header=make_header("other.schema", SchemaVersion(2)).under("other.schema", SchemaVersion(2)),
        attributes=FrozenDict({"queue": float("inf")}),
        inputs=(value_id("x"), value_id("x"), NOWHERE),
        outputs=(value_id("y"),),
        values=(replace(GOOD.values[0], owners=(99,)), *GOOD.values[1:], GOOD.values[0]),
        tasks=(
            replace(GOOD.tasks[0], dependencies=(node_id("sum.1"),), attributes=FrozenDict({"route": 1})),
            replace(GOOD.tasks[1], id=GOOD.tasks[0].id, ranks=(0,), outputs=()),
        ),
    )
    assert [item.code for item in everything.diagnostics()] == [
        "schema.name",
        "schema.version",
        "serialization.unsupported",
        "distributed.name",
        "distributed.parent_digest",
        "id.duplicate",
        "id.duplicate",
        "reference.unknown",
        "dag.self_dependency",
        "reference.unknown",
        "distributed.duplicate_input",
        "rank.unknown",
        "attribute.reserved",
        "collective.participants",
        "dataflow.undefined_output",
        "attribute.reserved",
    ]


def test_a_program_is_judged_once() -> None:
    assert GOOD.diagnostics() is GOOD.diagnostics()
    with pytest.raises(IRVerificationError, match="DistributedTaskIR verification failed") as caught:
        FAULTS["name"][0].require_valid()
    assert caught.value.subject == "DistributedTaskIR"


# -- regions -----------------------------------------------------------------------------------------------------


def in_region(name: str = "body", **fields: Any) -> Region:
    inner = replace(value("inner", MESH), id=value_id(f"{name}.inner"))
    result = replace(value("result", MESH), id=value_id(f"{name}.result"))
    given: dict[str, Any] = {
        "id": region_id(name),
        "name": name,
        "values": (inner, result),
        "tasks": (
            replace(
                task(f"{name}.step", MESH, LocalCompute()), inputs=(inner.id,), outputs=(result.id,), dependencies=()
            ),
        ),
        "inputs": (inner.id,),
        "outputs": (result.id,),
    }
    return Region(**{**given, **fields})


BODY = in_region()
STEP = str(BODY.tasks[0].id)
PREDICATE = in_region("test")


def entering(body: Any, *regions: Region, **fields: Any) -> DistributedTaskIR:
    return replace(with_task(0, body=body, **fields), regions=regions)


REGION_FAULTS: dict[str, tuple[DistributedTaskIR, list[Finding]]] = {
    "unknown region": (
        entering(Call(region_id("zzz"))),
        [("region.unknown", "tasks.0.body.region", (MUL, str(region_id("zzz"))))],
    ),
    "unknown loop condition": (
        entering(Loop(BODY.id, region_id("zzz")), BODY),
        [("region.unknown", "tasks.0.body.condition", (MUL, str(region_id("zzz"))))],
    ),
    "call arity": (
        entering(Call(BODY.id), BODY, inputs=()),
        [("region.arity", "tasks.0.body.region", (MUL, str(BODY.id)))],
    ),
    "loop results": (
        entering(Loop(BODY.id), replace(BODY, outputs=())),
        [("region.arity", "tasks.0.body.body", (MUL, str(BODY.id)))],
    ),
    "branch region": (
        entering(Branch((BODY.id, PREDICATE.id), (1, 0)), BODY, PREDICATE, operands=(0, 0)),
        [("region.arity", "tasks.0.body.regions.1", (MUL, str(PREDICATE.id)))],
    ),
    "branch operands": (
        entering(Branch((BODY.id,), (1,)), BODY),
        [("region.arity", "tasks.0.body", (MUL,))],
    ),
    "cycle": (
        replace(GOOD, regions=(replace(BODY, tasks=(replace(BODY.tasks[0], body=Call(BODY.id)),)),)),
        [("region.cycle", "regions", (str(BODY.id), str(BODY.id)))],
    ),
    "duplicate region": (
        replace(GOOD, regions=(BODY, in_region("test", id=BODY.id))),
        [("id.duplicate", "regions.1.id", (str(BODY.id),))],
    ),
    "task id of the program": (
        replace(GOOD, regions=(replace(BODY, tasks=(replace(BODY.tasks[0], id=node_id("mul.0")),)),)),
        [("id.duplicate", "regions.0.tasks.0.id", (MUL,))],
    ),
    "value inside": (
        replace(GOOD, regions=(replace(BODY, values=(replace(BODY.values[0], owners=()), BODY.values[1])),)),
        [("ownership.invalid", "regions.0.values.0.owners", (str(BODY.values[0].id),))],
    ),
    "task inside": (
        replace(GOOD, regions=(replace(BODY, tasks=(replace(BODY.tasks[0], ranks=()),)),)),
        [("rank.invalid", "regions.0.tasks.0.ranks", (STEP,))],
    ),
    "interface": (
        replace(GOOD, regions=(replace(BODY, inputs=(*BODY.inputs, *BODY.inputs)),)),
        [("distributed.duplicate_input", "regions.0.inputs", (str(BODY.inputs[0]),))],
    ),
    "attributes": (
        replace(GOOD, regions=(replace(BODY, attributes=FrozenDict({"queue": 1})),)),
        [("attribute.reserved", "regions.0.attributes.queue", ())],
    ),
}


@pytest.mark.parametrize("name", REGION_FAULTS)
def test_region_faults(name: str) -> None:
    faulty, expected = REGION_FAULTS[name]
    assert findings(faulty) == expected
    assert all(item.hint for item in faulty.diagnostics())


@pytest.mark.parametrize(
    "clean",
    [
        entering(Call(BODY.id), BODY),
        entering(Loop(BODY.id, PREDICATE.id), BODY, PREDICATE),
        entering(Loop(BODY.id, None, 10), BODY),
        entering(Branch((BODY.id, PREDICATE.id), (1, 1)), BODY, PREDICATE, operands=(0, 0, 0)),
        replace(GOOD, regions=(BODY,)),
        # A region may yield a value twice, or pass an input through.
        replace(GOOD, regions=(replace(BODY, outputs=(*BODY.outputs, *BODY.outputs, *BODY.inputs)),)),
    ],
    ids=["call", "loop", "counted loop", "branch", "unused", "repeated outputs"],
)
def test_region_neighbours(clean: DistributedTaskIR) -> None:
    assert findings(clean) == []


def test_a_long_chain_of_regions_is_no_obstacle() -> None:
    build = ProgramBuilder("deep", axes={"x": 1})
    regions = [build.region(f"r{index}") for index in range(3000)]
    for outer, inner in pairwise(regions):
        outer.task("core.call", body=Call(inner.id))
    build.value("v", (1,), "f32")
    build.task("core.call", body=Call(regions[0].id))
    assert findings(build.build()) == []
    regions[-1].task("core.call", body=Call(regions[0].id))
    assert [code for code, _, _ in findings(build.build())] == ["region.cycle"]


# -- cost --------------------------------------------------------------------------------------------------------


def test_a_huge_mesh_costs_nothing() -> None:
    everyone = RankRange(0, 2_000_000_000)
    half = 1_000_000_000
    mesh = mesh_of(dp=2, tp=half)
    groups = (RankRange(0, half), RankRange(half, 2 * half))
    tracemalloc.start()
    try:
        huge = replace(
            GOOD,
            mesh=mesh,
            values=tuple(replace(item, owners=everyone) for item in GOOD.values),
            tasks=(
                replace(GOOD.tasks[0], ranks=everyone),
                replace(
                    GOOD.tasks[1],
                    ranks=everyone,
                    body=Collective(AllReduce(everyone, 8, ReductionKind.SUM, groups=groups)),
                ),
            ),
        )
        assert findings(huge) == []
        faulty = replace(
            huge,
            tasks=(
                replace(huge.tasks[0], body=PointToPoint(PeerTransfer(0, 1, 8))),
                replace(huge.tasks[1], body=Collective(AllGather(everyone, 8, groups=(groups[0], groups[0])))),
            ),
        )
        assert [code for code, _, _ in findings(faulty)] == ["peer.endpoints", "collective.participants"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def chain(count: int, *, shared: bool) -> DistributedTaskIR:
    build = ProgramBuilder("chain", axes={"tp": 8})
    previous = build.input("v", (8, 8), "f32")
    everyone = tuple(range(8))
    for index in range(count):
        ranks = everyone if shared else tuple(range(8))
        following = build.value(f"v{index}", (8, 8), "f32", owners=ranks)
        body = Collective(AllReduce(ranks, 256, ReductionKind.SUM)) if index % 2 else LocalCompute()
        build.task("core.step", (previous,), (following,), body=body, ranks=ranks)
        previous = following
    build.output(previous)
    return build.build()


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions are called: the same on every machine."""
    count = 0

    def tick(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shared", [True, False])
def test_cost_is_linear_in_the_program(shared: bool) -> None:
    small, large = chain(200, shared=shared), chain(1600, shared=shared)
    first, second = calls_of(small.diagnostics), calls_of(large.diagnostics)
    assert not large.diagnostics()
    assert second < 8.5 * first


def test_deep_expressions_end_in_a_finding() -> None:
    deep: Any = Symbol("b", BindingAxis.WORKLOAD)
    for _ in range(10_000):
        deep = Add((deep, 1))
    for faulty in (with_spec(message_bytes=deep), with_value(0, type=TensorType((deep, 8), "f32"))):
        assert findings(faulty) == [("serialization.unsupported", "<snapshot>", ())]
        assert "nests deeper than" in faulty.diagnostics().diagnostics[0].message


def test_deep_attributes_end_in_a_finding() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = (deep,)
    faulty = replace(GOOD, attributes=FrozenDict({"a": deep, "b": frozenset({1})}))
    assert findings(faulty) == [("serialization.unsupported", "<snapshot>", ())]


@settings(max_examples=40)
@given(programs())
def test_built_programs_are_valid(made: DistributedTaskIR) -> None:
    assert findings(made) == []


def test_a_mesh_of_endless_digits_is_said_to_have_no_form() -> None:
    faulty = replace(GOOD, mesh=replace(MESH, axes=(MeshAxis("dp", BIG), MeshAxis("tp", BIG))))
    assert ("serialization.unsupported", "<snapshot>", ()) in findings(faulty)
    outside = replace(faulty, tasks=(replace(faulty.tasks[0], ranks=(BIG**3,)), faulty.tasks[1]))
    assert "rank.unknown" in [code for code, _, _ in findings(outside)]


def test_region_ids_are_not_task_ids() -> None:
    assert RegionId.derive("a").value != NodeId.derive("a").value
