"""The builder derives what is not said, and says no to what cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dtir.ir import (
    AllReduce,
    Call,
    Collective,
    DistributedTaskIR,
    Effect,
    EffectKind,
    IRVerificationError,
    IssueList,
    Limit,
    Lineage,
    LocalCompute,
    LogicalMesh,
    MeshAxis,
    NodeId,
    OperationName,
    Partial,
    PipelineSlot,
    ProgramBuilder,
    RankRange,
    ReductionKind,
    Scale,
    ShardingSpec,
    ValueId,
    ValueRole,
)
from dtir.schema import FrozenDict, content_digest
from tests.helpers.strategies import meshes


def demo() -> ProgramBuilder:
    build = ProgramBuilder("demo", axes={"dp": 2, "tp": 4})
    x = build.input("x", (8, 16), "bf16")
    h = build.value("h", (8, 16), "bf16")
    y = build.value("y", (8, 16), "bf16", role=ValueRole.OUTPUT)
    build.task("core.mul", (x, x), (h,), name="square")
    build.task("core.add", (h, x), (y,))
    build.output(y)
    return build


def test_everything_unsaid_is_derived() -> None:
    program = demo().build(require_valid=True)
    first, second = program.tasks
    assert program.mesh == LogicalMesh("mesh", (MeshAxis("dp", 2), MeshAxis("tp", 4)))
    assert program.values[0].id == ValueId.derive("demo", "value", "x")
    assert program.values[0].owners == tuple(range(8))
    assert program.values[0].sharding == ShardingSpec(((), ()), ("dp", "tp"))
    assert program.values[0].role is ValueRole.INPUT
    assert (first.id, second.id) == (NodeId.derive("demo", "task", "square"), NodeId.derive("demo", "task", 1))
    assert first.body == LocalCompute()
    assert first.operation == OperationName("core", "mul")
    assert (first.inputs, first.operands) == ((program.values[0].id,), (0, 0))
    assert (second.operands, second.dependencies) == ((), (first.id,))
    assert second.lineage == Lineage.root("build")
    assert program.header.parent_digests == (program.source_model_digest,)
    assert program.source_model_digest == content_digest("demo", "dtir.builder")
    assert program.header.schema_name == "dtir.distributed-task"


def test_building_again_gives_the_same_program() -> None:
    build = demo()
    assert build.build() == build.build() == demo().build()
    assert build.build().digest == demo().build().digest
    build.value("more", (1,), "f32")
    assert len(build.build().values) == 4


def test_what_is_said_is_kept() -> None:
    build = ProgramBuilder(
        "said",
        mesh=LogicalMesh("own", (MeshAxis("tp", 2),)),
        source_model_digest="ab" * 20,
        attributes={"a": [1]},
        features=("beta",),
        producer_version="7",
    )
    value, node = ValueId.derive("own"), NodeId.derive("own")
    made = build.input(
        "v",
        (4,),
        "f32",
        role=ValueRole.PARAMETER,
        sharding=ShardingSpec((("tp",),)),
        owners=(1,),
        lineage=Lineage.root("import"),
        source_value=ValueId.derive("model"),
        attributes={"b": {"c": 1}},
        scale=Scale(1, 2),
        grad_of=ValueId.derive("w"),
        id=value,
    )
    assert made == value
    task = build.task(
        OperationName("core", "op"),
        (value,),
        ranks=(1, 0),
        dependencies=(),
        effects=(Effect(EffectKind.READ, "cache"),),
        attributes={"d": 1},
        pipeline=PipelineSlot(0, 1, "forward"),
        lineage=Lineage.root("import"),
        id=node,
    )
    assert task == node
    later = build.task("core.wait", after=(node, node), completes=(node,))
    build.issue(0, [node, (later,)])
    build.limit("inflight", 2)
    build.limit("peak_bytes", 100, rank=1)
    build.assume("b > 1", "b % 2 == 0")
    build.bind(b=4, r=0.5)
    program = build.build(require_valid=True, strict_order=True)
    assert program.mesh.name == "own"
    assert program.header.feature_set == {"typed-semantics", "beta"}
    assert (program.header.producer_version, program.source_model_digest) == ("7", "ab" * 20)
    assert program.attributes == FrozenDict({"a": (1,)})
    held = program.values[0]
    assert (held.owners, held.scale, held.grad_of) == ((1,), Scale(1, 2), ValueId.derive("w"))
    assert held.attributes == FrozenDict({"b": FrozenDict({"c": 1})})
    assert program.tasks[1].dependencies == (node,)
    assert program.tasks[1].completes == (node,)
    assert program.issue == (IssueList(0, ((node,), (later,))),)
    assert program.limits == (Limit("inflight", 2), Limit("peak_bytes", 100, 1))
    assert program.assume == ("b > 1", "b % 2 == 0")
    assert program.bindings == FrozenDict({"b": 4, "r": 0.5})
    assert program.strict_order


def test_axes_that_are_named_nowhere_are_replicated() -> None:
    build = ProgramBuilder("layouts", axes={"dp": 2, "tp": 2, "pp": 2})
    build.value("a", (8, 8), "f32", split={1: ("tp", "dp")})
    build.value("b", (8, 8), "f32", split={0: "dp"}, partial=Partial(("tp",), ReductionKind.SUM))
    build.value("c", (8, 8), "f32", varying=("pp",))
    a, b, c = (value.sharding for value in build.build().values)
    assert a == ShardingSpec(((), ("tp", "dp")), ("pp",))
    assert b == ShardingSpec((("dp",), ()), ("pp",), partial=Partial(("tp",), ReductionKind.SUM))
    assert c == ShardingSpec(((), ()), ("dp", "tp"), varying=("pp",))


def test_regions() -> None:
    build = ProgramBuilder("outer", axes={"x": 1})
    body = build.region("body", {"note": 1})
    inner = body.input("v", (4,), "f32")
    result = body.value("w", (4,), "f32")
    body.task("core.step", (inner,), (result,))
    body.output(result)
    v = build.input("v", (4,), "f32")
    w = build.value("w", (4,), "f32")
    build.task("core.call", (v,), (w,), body=Call(body.id))
    build.output(w)
    program = build.build(require_valid=True)
    (region,) = program.regions
    assert (region.name, region.inputs, region.attributes) == ("body", (inner,), FrozenDict({"note": 1}))
    assert inner != v
    assert len({task.id for task in program.all_tasks()}) == 2


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda build: build.value("x", (1,), "f32"), "name='x' (str) names another value of this scope"),
        (lambda build: build.task("a.b", name="square"), "name='square' (str) names another task of this scope"),
        (lambda build: (build.region("r"), build.region("r")), "name='r' (str) names another region of this scope"),
        (
            lambda build: build.value("v", (1,), "f32", split={0: "dp"}, sharding=ShardingSpec(((),))),
            "stands for the whole layout",
        ),
        (lambda build: build.value("v", (1,), "f32", split={1: "dp"}), "names dim 1 of a tensor of rank 1"),
    ],
)
def test_what_cannot_be_meant(use: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        use(demo())
    assert message in str(caught.value)


def test_a_mesh_is_given_once() -> None:
    for fields in ({}, {"axes": {"x": 1}, "mesh": LogicalMesh("m", (MeshAxis("x", 1),))}):
        with pytest.raises(ValueError, match="give one of the two"):
            ProgramBuilder("p", **fields)  # type: ignore[arg-type]


def test_arguments_are_matched_as_by_the_records() -> None:
    with pytest.raises(TypeError, match=r"TensorType\.shape must match"):
        demo().value("v", ("a",), "f32")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"OperationName\.name must match"):
        demo().task("nodot")


def test_validity_is_asked_for() -> None:
    build = ProgramBuilder("empty", axes={"x": 1})
    assert [item.code for item in build.build().diagnostics()] == ["distributed.empty"]
    with pytest.raises(IRVerificationError, match=r"distributed\.empty"):
        build.build(require_valid=True)


@given(meshes())
def test_a_program_over_any_mesh(mesh: LogicalMesh) -> None:
    build = ProgramBuilder("any", mesh=mesh)
    part = build.input("part", (4,), "f32", partial=Partial(mesh.axis_names, ReductionKind.SUM))
    whole = build.value("whole", (4,), "f32")
    body = Collective(AllReduce(tuple(range(mesh.size)), 16, ReductionKind.SUM, axes=mesh.axis_names))
    build.task("collective.all_reduce", (part,), (whole,), body=body)
    build.output(whole)
    program = build.build(require_valid=True)
    assert DistributedTaskIR.require_from_json(program.to_json()) == program


def test_a_huge_mesh_is_a_run_of_ranks() -> None:
    build = ProgramBuilder("huge", axes={"x": 2_000_000_000})
    build.value("v", (1,), "f32")
    build.task("a.b")
    program = build.build(require_valid=True)
    assert program.tasks[0].ranks is program.values[0].owners
    assert isinstance(program.tasks[0].ranks, RankRange)
