"""What is compared of a task, a value and a mesh: fields as text, without names, numbers of ids and other accidents.

Two listings of the same groups are equal, however they are written (axes of the mesh or member lists, groups in any order).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from dtir.analysis.groups import groups_of, member_count
from dtir.analysis.scalars import scalar_text
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
    collective_kind,
)
from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import EXPANDED_RANKS_LIMIT, RankRange
from dtir.ir.sharding import ShardingSpec
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    LocalCompute,
    Loop,
    PointToPoint,
    Reshard,
)
from dtir.ir.values import UNSCALED, DistributedValue

MAX_MEMBERS = 1_000_000
"""Groups with more members together are compared as they are written, not member by member."""

PROVENANCE = frozenset(
    {
        "op_name",
        "source",
        "hlo.channel_id",
        "hlo.backend_config",
        "hlo.frontend_attributes",
        "hlo.metadata",
        "hlo.replica_groups",  # the text; the collective itself holds the groups
        "hlo.use_global_device_ids",
    }
)
"""Attributes that say where a thing comes from or how it was written, not what it does."""

COMMUTATIVE = frozenset({"add", "multiply", "mul", "maximum", "max", "minimum", "min", "and", "or", "xor"})
"""Operations whose two operands may be swapped, bit for bit."""

Facts = Mapping[str, str]
Names = Mapping[str, str]
NO_NAMES: Names = {}
"""Axis names to use for others; none."""


def ranks_text(ranks: tuple[int, ...] | RankRange) -> str:
    """A set of ranks; a run of them as ``0..7``.

    >>> ranks_text((0, 1, 2, 3)), ranks_text((0, 2))
    ('0..3', '0,2')
    """
    if isinstance(ranks, RankRange):
        run = ranks.as_range
        if len(run) and run.step == 1:
            return _run_text(run[0], run[-1])
        if len(run) > EXPANDED_RANKS_LIMIT:
            return f"{run[0]}..{run[-1]} step {run.step}"
        ranks = tuple(run)
    if len(ranks) > 1 and ranks == tuple(range(ranks[0], ranks[0] + len(ranks))):
        return _run_text(ranks[0], ranks[-1])
    return ",".join(map(str, ranks))


def _run_text(first: int, last: int) -> str:
    return f"{first}..{last}" if last > first else str(first)


def groups_text(spec: CollectiveSpecVariant, mesh: LogicalMesh, names: Names = NO_NAMES) -> str:
    """The groups in member order, sorted by their first members: ``{0,1}{2,3}``; pairs of a permute as ``0>1 1>0``."""
    if isinstance(spec, CollectivePermute):
        return " ".join(f"{source}>{target}" for source, target in sorted(spec.pairs))
    groups = groups_of(spec, mesh)
    if groups is None or (spec.axes and member_count(groups) > MAX_MEMBERS):
        return "axes " + ",".join(names.get(axis, axis) for axis in spec.axes)
    listed = sorted(tuple(group) for group in groups)
    return "".join("{" + ",".join(map(str, group)) + "}" for group in listed)


def commutes(task: DistributedTask) -> bool:
    """Whether the order of a local task's operands does not count."""
    return isinstance(task.body, LocalCompute) and task.operation.name in COMMUTATIVE and len(task.operand_values) == 2


def task_kind(task: DistributedTask) -> str:
    """The kind of the collective, else the body tag."""
    return collective_kind(task.body.spec).value if isinstance(task.body, Collective) else task.body_tag


def task_facts(task: DistributedTask, program: DistributedTaskIR, names: Names = NO_NAMES) -> dict[str, str]:
    """The fields of a task, without what it reads, what it makes and the regions it enters."""
    facts = {"operation": str(task.operation), "kind": task_kind(task)}
    facts.update(_body_facts(task, program, names))
    if facts.get("channel") == task.name:
        del facts["channel"]  # an importer's own word for "a channel of its own"
    if not isinstance(task.body, Collective):
        facts["ranks"] = ranks_text(task.ranks)
    for key, value in task.attributes.items():
        if key not in PROVENANCE and value is not None:
            facts[f"attributes.{key}"] = _plain(value)
    if task.effects:
        facts["effects"] = ", ".join(f"{effect.kind.value} {effect.resource}" for effect in task.effects)
    if task.pipeline is not None:
        slot = task.pipeline
        facts["pipeline"] = f"stage {slot.stage}, microbatch {slot.microbatch}, {slot.phase}, chunk {slot.chunk}"
    return facts


def _body_facts(task: DistributedTask, program: DistributedTaskIR, names: Names) -> dict[str, str]:
    body = task.body
    match body:
        case LocalCompute() | Control() | Call():
            return {}
        case Collective(spec=spec):
            return _collective_facts(spec, program.mesh, names)
        case PointToPoint(spec=spec):
            return {
                "peers": f"{spec.source_rank}>{spec.destination_rank}",
                "message_bytes": scalar_text(spec.message_bytes),
                "channel": spec.channel,
            }
        case Reshard(kind=kind, regions=regions):
            blocks = [
                ",".join(f"{span.start}:{span.stop}" for span in block.box)
                + ("" if block.source is None else " < " + ",".join(f"{s.start}:{s.stop}" for s in block.source))
                for block in regions
            ]
            return {"reshard": kind.value, **({"blocks": "; ".join(blocks)} if blocks else {})}
        case Loop(trip_count=trips):
            return {"trip_count": "unknown" if trips is None else str(trips)}
        case Branch(operand_counts=counts):
            return {"branches": str(len(counts))}
        case _:
            assert_never(body)


def _collective_facts(spec: CollectiveSpecVariant, mesh: LogicalMesh, names: Names) -> dict[str, str]:
    facts = {"message_bytes": scalar_text(spec.message_bytes), "groups": groups_text(spec, mesh, names)}
    match spec:
        case AllReduce(reduction=reduction):
            facts["reduction"] = reduction.value
        case ReduceScatter(reduction=reduction, dim=dim):
            facts["reduction"] = reduction.value
            facts.update(_dim("dim", dim))
        case AllGather(dim=dim):
            facts.update(_dim("dim", dim))
        case AllToAll(split_dim=split, concat_dim=concat):
            facts.update(_dim("split_dim", split) | _dim("concat_dim", concat))
        case Broadcast(root=root, roots=roots):
            facts["root"] = ",".join(map(str, roots or (root,)))
        case CollectivePermute(channel=channel):
            facts["channel"] = channel
        case _:
            assert_never(spec)
    return facts


def _dim(name: str, dim: int | None) -> dict[str, str]:
    return {} if dim is None else {name: str(dim)}


def value_facts(value: DistributedValue, names: Names = NO_NAMES) -> dict[str, str]:
    """The fields of a value."""
    facts = {
        "dtype": value.type.dtype,
        "shape": "[" + ",".join(scalar_text(extent) for extent in value.type.shape) + "]",
        "role": value.role.value,
        "owners": ranks_text(value.owners),
        **sharding_facts(value.sharding, names),
    }
    if value.scale != UNSCALED:
        facts["scale"] = f"{value.scale.numerator}/{value.scale.denominator}"
    if value.valid_on is not None:
        facts["valid_on"] = ranks_text(value.valid_on)
    if value.local_shapes:
        facts["local_shapes"] = "; ".join(f"{item.rank}: {list(item.shape)}" for item in value.local_shapes)
    return facts


def sharding_facts(sharding: ShardingSpec, names: Names = NO_NAMES) -> dict[str, str]:
    """The fields of a layout; equal layouts give equal facts, whatever order unordered axes stand in."""

    def named(axes: Iterable[str]) -> list[str]:
        return [names.get(axis, axis) for axis in axes]

    facts = {
        "sharding_dims": "[" + ", ".join("{" + ",".join(named(axes)) + "}" for axes in sharding.dimension_axes) + "]"
    }
    if sharding.replicated_axes:
        facts["sharding_replicated"] = ",".join(sorted(named(sharding.replicated_axes)))
    if sharding.partial is not None:
        facts["sharding_partial"] = f"{sharding.partial.op.value} over {','.join(sorted(named(sharding.partial.axes)))}"
    if sharding.varying:
        facts["sharding_varying"] = ",".join(sorted(named(sharding.varying)))
    if sharding.at:
        places = [f"{names.get(item.axis, item.axis)}={item.coordinate}" for item in sharding.at]
        facts["sharding_at"] = ",".join(sorted(places))
    if sharding.sizes:
        facts["sharding_sizes"] = "; ".join(f"dim {item.dim}: {list(item.sizes)}" for item in sharding.sizes)
    if sharding.halo is not None:
        dims = "; ".join(f"dim {item.dim}: {item.before}+{item.after}" for item in sharding.halo.dims)
        facts["sharding_halo"] = dims + ("" if sharding.halo.corners else " without corners")
    return facts


def mesh_facts(mesh: LogicalMesh) -> dict[str, str]:
    """Axes by name with their sizes, and their order."""
    facts = {f"axis {axis.name}": str(axis.size) for axis in mesh.axes}
    facts["axes"] = " x ".join(axis.name for axis in mesh.axes)
    return facts


def axis_names(before: LogicalMesh, after: LogicalMesh) -> dict[str, str]:
    """What the first mesh calls the axes of the second, where sizes and order agree and only names differ."""
    if [axis.size for axis in before.axes] != [axis.size for axis in after.axes]:
        return {}
    known = {axis.name for axis in before.axes} & {axis.name for axis in after.axes}
    pairs = list(zip(after.axes, before.axes, strict=True))
    if any(one.name != other.name and (one.name in known or other.name in known) for one, other in pairs):
        return {}  # the same names in another order: another mesh
    return {one.name: other.name for one, other in pairs if one.name != other.name}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = sorted((str(key), _plain(entry)) for key, entry in value.items())  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        return "{" + ", ".join(f"{key}: {entry}" for key, entry in entries) + "}"
    return repr(value)


def differences(before: Facts, after: Facts) -> list[tuple[str, str, str]]:
    """Field, before and after of what differs, in a stable order; empty text where a side lacks it.

    >>> differences({"dim": "0", "kind": "all_gather"}, {"dim": "1", "kind": "all_gather"})
    [('dim', '0', '1')]
    """
    fields = [*before, *(key for key in after if key not in before)]
    return [
        (key, before.get(key, ""), after.get(key, "")) for key in fields if before.get(key, "") != after.get(key, "")
    ]
