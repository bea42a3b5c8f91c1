"""What the upstream format cannot hold: one finding a thing, with path, subject and hint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from dtir.ir import (
    Add,
    AxisCoordinate,
    BindingAxis,
    Branch,
    Call,
    Collective,
    CollectiveKind,
    CollectivePermute,
    DistributedTaskIR,
    Effect,
    EffectKind,
    Halo,
    HaloDim,
    IRVerificationError,
    IssueList,
    Limit,
    Lineage,
    LocalShape,
    Loop,
    Partial,
    PipelineSlot,
    RankRange,
    ReductionKind,
    Region,
    RegionId,
    Reshard,
    ReshardKind,
    Scale,
    ShardingSpec,
    ShardSizes,
    Symbol,
    TensorType,
    ValueId,
    all_ranks,
)
from dtir.ir.obstacles import upstream_obstacles
from dtir.schema import FrozenDict, SerializationError, record_spec
from dtir.schema.authoring import record_classes
from tests.helpers.programs import mesh_of, node_id, program, task, value_id
from tests.helpers.strategies import programs

MESH = mesh_of(dp=2, tp=4)
NAMED = program(MESH, spec=None)


def plain() -> DistributedTaskIR:
    """The demo program without anything of ours."""
    body: Any = NAMED.tasks[1].body
    spec = replace(body.spec, axes=())
    tasks = (replace(NAMED.tasks[0], name=""), replace(NAMED.tasks[1], name="", body=Collective(spec)))
    return replace(NAMED, values=tuple(replace(item, name="") for item in NAMED.values), tasks=tasks)


GOOD = plain()
X, MUL, SUM = str(value_id("x")), str(node_id("mul.0")), str(node_id("sum.1"))
REGION = Region(RegionId.derive("r"), "r", (), (task("inner", MESH, Reshard(ReshardKind.HALO)),), (), ())


def with_value(**fields: Any) -> DistributedTaskIR:
    return replace(GOOD, values=(replace(GOOD.values[0], **fields), *GOOD.values[1:]))


def with_sharding(**fields: Any) -> DistributedTaskIR:
    return with_value(sharding=replace(GOOD.values[0].sharding, **fields))


def with_task(index: int, **fields: Any) -> DistributedTaskIR:
    tasks = list(GOOD.tasks)
    tasks[index] = replace(tasks[index], **fields)
    return replace(GOOD, tasks=tuple(tasks))


def with_spec(**fields: Any) -> DistributedTaskIR:
    body: Any = GOOD.tasks[1].body
    return with_task(1, body=Collective(replace(body.spec, **fields)))


def no_field(name: str) -> str:
    return f"the upstream format has no field {name}"


DEEP: Any = Symbol("b", BindingAxis.WORKLOAD)
for _ in range(300):
    DEEP = Add((DEEP, 1))

OBSTACLES: dict[str, tuple[DistributedTaskIR, str, tuple[str, ...], str]] = {
    "issue": (replace(GOOD, issue=(IssueList(0, ()),)), "issue", (), no_field("DistributedTaskIR.issue")),
    "limits": (replace(GOOD, limits=(Limit("a", 1),)), "limits", (), no_field("DistributedTaskIR.limits")),
    "assume": (replace(GOOD, assume=("b > 1",)), "assume", (), no_field("DistributedTaskIR.assume")),
    "bindings": (replace(GOOD, bindings=FrozenDict({"b": 1})), "bindings", (), no_field("DistributedTaskIR.bindings")),
    "oracle": (replace(GOOD, oracle=REGION), "oracle", (), no_field("DistributedTaskIR.oracle")),
    "strict order": (replace(GOOD, strict_order=True), "strict_order", (), no_field("DistributedTaskIR.strict_order")),
    "regions": (replace(GOOD, regions=(REGION,)), "regions", (), no_field("DistributedTaskIR.regions")),
    "value name": (with_value(name="x"), "values.0.name", (X,), no_field("DistributedValue.name")),
    "scale": (with_value(scale=Scale(1, 2)), "values.0.scale", (X,), no_field("DistributedValue.scale")),
    "grad_of": (with_value(grad_of=ValueId.derive(1)), "values.0.grad_of", (X,), no_field("DistributedValue.grad_of")),
    "valid_on": (with_value(valid_on=()), "values.0.valid_on", (X,), no_field("DistributedValue.valid_on")),
    "local shapes": (
        with_value(local_shapes=(LocalShape(0, (1, 1)),)),
        "values.0.local_shapes",
        (X,),
        no_field("DistributedValue.local_shapes"),
    ),
    "partial": (
        with_sharding(replicated_axes=("dp",), partial=Partial(("tp",), ReductionKind.SUM)),
        "values.0.sharding.partial",
        (X,),
        no_field("ShardingSpec.partial"),
    ),
    "varying": (
        with_sharding(replicated_axes=("dp",), varying=("tp",)),
        "values.0.sharding.varying",
        (X,),
        no_field("ShardingSpec.varying"),
    ),
    "at": (
        with_sharding(replicated_axes=("dp",), at=(AxisCoordinate("tp", 0),)),
        "values.0.sharding.at",
        (X,),
        no_field("ShardingSpec.at"),
    ),
    "sizes": (
        with_sharding(sizes=(ShardSizes(0, (4,)),)),
        "values.0.sharding.sizes",
        (X,),
        no_field("ShardingSpec.sizes"),
    ),
    "halo": (
        with_sharding(halo=Halo((HaloDim(0, 1, 1),))),
        "values.0.sharding.halo",
        (X,),
        no_field("ShardingSpec.halo"),
    ),
    "empty dim": (
        with_value(type=TensorType((4, 0), "f32")),
        "values.0.type",
        (X,),
        "TensorType.shape must match positive dimensions, got (4, 0)",
    ),
    "task name": (with_task(0, name="x"), "tasks.0.name", (MUL,), no_field("DistributedTask.name")),
    "operands": (with_task(0, operands=(0, 0)), "tasks.0.operands", (MUL,), no_field("DistributedTask.operands")),
    "completes": (
        with_task(1, completes=(node_id("mul.0"),)),
        "tasks.1.completes",
        (SUM,),
        no_field("DistributedTask.completes"),
    ),
    "pipeline": (
        with_task(0, pipeline=PipelineSlot(0, 0, "forward")),
        "tasks.0.pipeline",
        (MUL,),
        no_field("DistributedTask.pipeline"),
    ),
    "effect kind": (
        with_task(0, effects=(Effect(EffectKind.READ, "a"), Effect(EffectKind.ALLOC, "a"))),
        "tasks.0.effects.1.kind",
        (MUL,),
        "the upstream format has no EffectKind 'alloc'",
    ),
    "axes": (with_spec(axes=("tp",)), "tasks.1.body.spec.axes", (SUM,), no_field("AllReduce.axes")),
    "groups": (with_spec(groups=(all_ranks(8),)), "tasks.1.body.spec.groups", (SUM,), no_field("AllReduce.groups")),
    "reduction": (
        with_spec(reduction=ReductionKind.AVERAGE),
        "tasks.1.body.spec.reduction",
        (SUM,),
        "the upstream format has no ReductionKind 'avg'",
    ),
    "permute": (
        with_task(1, body=Collective(CollectivePermute(all_ranks(8), 8, ()))),
        "tasks.1.body.spec",
        (SUM,),
        "the upstream format has no CollectivePermute",
    ),
    "reshard kind": (
        with_task(0, body=Reshard(ReshardKind.HALO)),
        "tasks.0.body.kind",
        (MUL,),
        no_field("Reshard.kind"),
    ),
    "call": (with_task(0, body=Call(REGION.id)), "tasks.0.body", (MUL,), "the upstream format has no Call"),
    "loop": (with_task(0, body=Loop(REGION.id)), "tasks.0.body", (MUL,), "the upstream format has no Loop"),
    "branch": (with_task(0, body=Branch((), ())), "tasks.0.body", (MUL,), "the upstream format has no Branch"),
    "region id": (
        with_task(0, attributes=FrozenDict({"a": ({"b": frozenset({REGION.id})},)})),
        "tasks.0.attributes.a.0.b.0",
        (MUL,),
        "the upstream format has no RegionId",
    ),
    "region id as a source": (
        with_value(lineage=Lineage.lowered("pass", (node_id("a"), REGION.id))),
        "values.0.lineage.sources.1",
        (X,),
        "the upstream format has no RegionId",
    ),
    "enum in attributes": (
        replace(GOOD, attributes=FrozenDict({"a": CollectiveKind.COLLECTIVE_PERMUTE})),
        "attributes.a",
        (),
        "the upstream format has no CollectiveKind 'collective_permute'",
    ),
    "many ranks": (
        with_value(owners=RankRange(0, 65_537)),
        "values.0.owners",
        (X,),
        "65537 ranks would be written one by one; at most 65536 are",
    ),
    "depth": (
        with_spec(message_bytes=DEEP),
        "tasks.1.body.spec.message_bytes.terms.0.terms",
        (SUM,),
        "the upstream format nests at most 984 levels",
    ),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_each_obstacle_is_one_finding(name: str) -> None:
    faulty, path, subject, message = OBSTACLES[name]
    (found,) = upstream_obstacles(faulty)
    assert found.code == "serialization.upstream"
    assert (".".join(found.path), found.subject, found.message) == (path, subject, message)
    assert found.hint
    with pytest.raises(SerializationError, match=r"\[serialization\.upstream\]"):
        _ = faulty.upstream_digest


def test_without_obstacles_it_is_written() -> None:
    assert upstream_obstacles(GOOD) == ()
    assert DistributedTaskIR.require_from_json(GOOD.to_upstream_json()) == GOOD


def test_everything_is_found_at_once_in_the_order_of_the_program() -> None:
    with pytest.raises(IRVerificationError) as caught:
        NAMED.to_upstream_json()
    assert [".".join(item.path) for item in caught.value.diagnostics] == [
        "values.0.name",
        "values.1.name",
        "values.2.name",
        "tasks.0.name",
        "tasks.1.name",
        "tasks.1.body.spec.axes",
    ]
    assert caught.value.subject == "DistributedTaskIR"


def test_a_shared_part_is_found_at_every_place() -> None:
    sharding = ShardingSpec(((), ()), ("dp",), varying=("tp",))
    shared = replace(GOOD, values=tuple(replace(item, sharding=sharding) for item in GOOD.values))
    assert [item.path[1] for item in upstream_obstacles(shared)] == ["0", "1", "2"]


def test_an_invalid_program_is_not_written() -> None:
    with pytest.raises(IRVerificationError, match=r"distributed\.name"):
        replace(GOOD, name="").to_upstream_json()


def test_short_runs_are_written_as_tuples() -> None:
    everyone = RankRange(0, 8)
    as_run = replace(
        with_spec(participants=everyone), values=tuple(replace(item, owners=everyone) for item in GOOD.values)
    )
    assert as_run == GOOD
    assert as_run.to_upstream_json() == GOOD.to_upstream_json()
    assert '"ranks":{"$tuple":[0,1,2,3,4,5,6,7]}' in as_run.to_upstream_json()


@settings(max_examples=40)
@given(programs())
def test_what_is_written_is_read_back(made: DistributedTaskIR) -> None:
    if upstream_obstacles(made):
        with pytest.raises(IRVerificationError):
            made.to_upstream_json()
    else:
        assert DistributedTaskIR.require_from_json(made.to_upstream_json()) == made


@settings(max_examples=40)
@given(programs(extended=False))
def test_programs_without_extensions_have_no_obstacle(made: DistributedTaskIR) -> None:
    assert upstream_obstacles(made) == ()


def test_every_extension_field_has_a_case() -> None:
    declared = {
        f"{cls.__name__}.{item.name}"
        for cls in record_classes(object)
        if cls.__module__.startswith("dtir.")
        for item in record_spec(cls).fields
        if item.extension
    }
    seen = {message.rsplit(" ", 1)[1] for _, _, _, message in OBSTACLES.values() if " no field " in message}
    # The collectives share their fields; one class stands for all.
    collectives = {"ReduceScatter", "AllGather", "AllToAll", "Broadcast", "CollectivePermute", "Reshard"}
    assert {name for name in declared if name.split(".")[0] not in collectives} <= seen
