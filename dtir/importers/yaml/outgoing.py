"""Values and tasks as the mappings of the authoring form; only what differs from what the reader would assume is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never, cast

from dtir.importers.yaml.layout import ranks_at, value_id
from dtir.importers.yaml.origin import WRITTEN_HERE
from dtir.importers.yaml.ranks import union_of
from dtir.importers.yaml.scalars import write_scalar
from dtir.importers.yaml.sealed import Unwritable, canonical, plain
from dtir.importers.yaml.vocabulary import COMMON_TASK_KEYS, EXCHANGES, KIND_KEYS
from dtir.ir import (
    EMPTY_SEMANTIC,
    AllGather,
    AllReduce,
    AllToAll,
    Branch,
    Broadcast,
    Call,
    Collective,
    CollectivePermute,
    Control,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Lineage,
    LocalCompute,
    Loop,
    NodeId,
    OperationName,
    PointToPoint,
    RankRange,
    ReduceScatter,
    RegionId,
    Reshard,
    ReshardKind,
    Scalar,
    ValueId,
    ValueRole,
    all_ranks,
)
from dtir.ir.program import Scope
from dtir.ops import CORE, find_op
from dtir.schema.frozen import FrozenDict


def _scalar(value: Scalar) -> int | float | str:
    return value if isinstance(value, (int, float)) else write_scalar(value)


def _ranks(ranks: tuple[int, ...] | RankRange) -> Any:
    if isinstance(ranks, RankRange):
        return {"start": ranks.start, "stop": ranks.stop, "step": ranks.step}
    return list(ranks)


def _lineage(lineage: Lineage) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": lineage.kind.value, "transform": lineage.transform}
    return {**found, "sources": [str(item) for item in lineage.sources]} if lineage.sources else found


class ValueWriter:
    """Writes the values of one scope."""

    def __init__(
        self, program: DistributedTaskIR, scope: Scope, names: Mapping[ValueId, str], prefix: tuple[str, ...]
    ) -> None:
        self.program, self.scope, self.names, self.prefix = program, scope, names, prefix

    def write(self, value: DistributedValue, index: int) -> dict[str, Any]:
        """One value.

        Raises:
            Unwritable: an attribute has no plain form.
        """
        path = (*self.prefix, "values", str(index))
        name, sharding = self.names[value.id], value.sharding
        found: dict[str, Any] = {"id": name}
        if value.id != value_id(self.program.name, *self.prefix, name):
            found["uid"] = value.id.value
        if value.name != name:
            found["name"] = value.name
        found["shape"] = [_scalar(extent) for extent in value.type.shape]
        if value.type.dtype != "f32":
            found["dtype"] = value.type.dtype
        if value.type.layout is not None:
            found["layout"] = list(value.type.layout)
        if value.type.attributes:
            found["type_attributes"] = plain(value.type.attributes, path)
        found["dims"] = [list(axes) for axes in sharding.dimension_axes]
        found.update(self._layout(value, path))
        found.update(self._rest(value, path))
        return found

    def _layout(self, value: DistributedValue, path: Sequence[str]) -> dict[str, Any]:
        sharding, found = value.sharding, dict[str, Any]()
        if sharding.partial is not None:
            pending: dict[str, Any] = dict.fromkeys(sharding.partial.axes, sharding.partial.op.value)
            mixed = value.attributes.get("partial")
            if isinstance(mixed, FrozenDict):
                words = cast("FrozenDict[Any]", mixed)
                pending = {axis: words.get(axis, word) for axis, word in pending.items()}
            found["partial"] = pending
        if sharding.varying:
            found["varying"] = list(sharding.varying)
        at = {item.axis: item.coordinate for item in sharding.at}
        if at:
            found["at"] = at
        used = {*sharding.split_axes, *sharding.partial_axes, *sharding.varying, *at}
        if sharding.replicated_axes != tuple(axis for axis in self.program.mesh.axis_names if axis not in used):
            found["replicated"] = list(sharding.replicated_axes)
        if sharding.sizes:
            found["sizes"] = {item.dim: list(item.sizes) for item in sharding.sizes}
        if sharding.halo is not None:
            found["halo"] = {
                item.dim: item.before if item.before == item.after else [item.before, item.after]
                for item in sharding.halo.dims
            }
            if not sharding.halo.corners:
                found["corners"] = False
        if value.owners != ranks_at(self.program.mesh, at):
            found["owners"] = _ranks(value.owners)
        return found

    def _rest(self, value: DistributedValue, path: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if (value.scale.numerator, value.scale.denominator) != (1, 1):
            found["scale"] = f"{value.scale.numerator}/{value.scale.denominator}"
        if value.valid_on is not None:
            found["valid_on"] = list(value.valid_on)
        if value.local_shapes:
            found["local_shapes"] = {item.rank: list(item.shape) for item in value.local_shapes}
        attributes = {key: item for key, item in value.attributes.items() if key != "partial"}
        role = attributes.get("role")
        if value.role is not self._default_role(value):
            found["role"] = value.role.value
        elif isinstance(role, str) and role and role not in {item.value for item in ValueRole}:
            found["role"] = role
            del attributes["role"]
        if value.grad_of is not None:
            if value.grad_of not in self.names or value.grad_of != value_id(
                self.program.name, self.names[value.grad_of]
            ):
                raise Unwritable("the value that it is the gradient of has an id of its own", path)
            found["grad_of"] = self.names[value.grad_of]
        if value.source_value is not None:
            found["source_value"] = value.source_value.value
        if value.lineage != WRITTEN_HERE:
            found["lineage"] = _lineage(value.lineage)
        if attributes:
            found["attributes"] = {key: plain(item, (*path, "attributes", key)) for key, item in attributes.items()}
        return found

    def _default_role(self, value: DistributedValue) -> ValueRole:
        if value.id in self.scope.inputs:
            return ValueRole.INPUT
        return ValueRole.OUTPUT if value.id in self.scope.outputs else ValueRole.ACTIVATION


class TaskWriter:
    """Writes the tasks of one scope: a program, a region, or the oracle."""

    def __init__(
        self,
        program: DistributedTaskIR,
        values: Mapping[ValueId, DistributedValue],
        names: Mapping[ValueId, str],
        tasks: Mapping[NodeId, str],
        regions: Mapping[RegionId, str],
        prefix: tuple[str, ...],
    ) -> None:
        self.program, self.known, self.values, self.tasks = program, values, names, tasks
        self.regions, self.prefix = regions, prefix

    def write(self, task: DistributedTask, path: tuple[str, ...]) -> dict[str, Any]:
        """One task.

        Raises:
            Unwritable: a body or attribute that the form cannot say.
        """
        kind, own = self._body(task, path)
        name = self.tasks[task.id]
        found: dict[str, Any] = {"id": name}
        if task.id != NodeId.derive("yaml", self.program.name, *self.prefix, name):
            found["uid"] = task.id.value
        if task.name != name:
            found["name"] = task.name
        found["kind"] = kind
        word = own.get("coll") or (task.operation.name if kind == "local" else kind)
        if kind == "local":
            found["op"] = task.operation.name
        if isinstance(task.body, Reshard) and task.body.kind is ReshardKind.HALO:
            found["op"] = word = "halo"
        if task.operation != OperationName(CORE, word):
            found["operation"] = str(task.operation)
        found["in"] = [self.values[item] for item in task.operand_values]
        found["out"] = [self.values[item] for item in task.outputs]
        found.update(own)
        found.update(self._rest(task, kind, path))
        return found

    def _rest(self, task: DistributedTask, kind: str, path: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if task.ranks != self._default_ranks(task, kind):
            found["ranks"] = _ranks(task.ranks)
        if task.dependencies:
            found["deps"] = [self.tasks[item] for item in task.dependencies]
        if task.completes:
            found["completes"] = [self.tasks[item] for item in task.completes]
        if task.effects:
            found["effects"] = [{"kind": item.kind.value, "resource": item.resource} for item in task.effects]
        if task.pipeline is not None:
            slot = task.pipeline
            found["pp"] = {"stage": slot.stage, "mb": slot.microbatch, "phase": slot.phase}
            if slot.chunk:
                found["pp"]["chunk"] = slot.chunk
        if task.lineage != WRITTEN_HERE:
            found["lineage"] = _lineage(task.lineage)
        if task.semantic != EMPTY_SEMANTIC:
            found["semantic"] = canonical(task.semantic, (*path, "semantic"))
        return {**found, **self._attributes(task, kind, path)}

    def _attributes(self, task: DistributedTask, kind: str, path: tuple[str, ...]) -> dict[str, Any]:
        operator = find_op(task.operation) if kind == "local" else None
        known = (KIND_KEYS[kind] | (operator.parameters if operator else frozenset[str]())) - COMMON_TASK_KEYS
        shown = (known | {"sync", "intro", "c_oracle", "c_by_rank", "include_halo", "route"}) - {"op", "bytes", "dim"}
        shown |= {"dim"} if kind == "local" else set[str]()
        found: dict[str, Any] = {}
        other: dict[str, Any] = {}
        for key, item in task.attributes.items():
            word = key.removeprefix("op.")
            value = plain(item, (*path, "attributes", key))
            if key == "op.bytes" and value == "derived":
                continue
            if key == "op.root" and value is None:
                continue
            if key.startswith("op.") and word in shown:
                found[word] = value
            else:
                other[key] = value
        return {**found, "attributes": other} if other else found

    def _default_ranks(self, task: DistributedTask, kind: str) -> tuple[int, ...] | RankRange:
        values = [self.known[item] for item in task.operand_values]
        results = [self.known[item] for item in task.outputs]
        match task.body:
            case Collective(spec=spec):
                return spec.participants
            case PointToPoint(spec=transfer):
                return tuple(sorted((transfer.source_rank, transfer.destination_rank)))
            case _:
                owners = [value.owners for value in ((results or values) if kind == "local" else (*values, *results))]
                return (union_of(owners) if owners else None) or all_ranks(self.program.mesh.size)

    # -- bodies ---------------------------------------------------------------------------------------------------------

    def _body(self, task: DistributedTask, path: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
        match task.body:
            case LocalCompute():
                return "local", {}
            case Control():
                return "control", {}
            case Reshard(regions=regions):
                return "reshard", {"regions": [self._region(item) for item in regions]} if regions else {}
            case PointToPoint(spec=transfer):
                found: dict[str, Any] = {"src": transfer.source_rank, "dst": transfer.destination_rank}
                if transfer.channel != "default":
                    found["channel"] = transfer.channel
                return "p2p", {**found, **self._bytes(task, transfer.message_bytes)}
            case Collective():
                return self._collective(task, task.body)
            case Call(region=region):
                return "call", {"region": self._region_name(region, path)}
            case Loop(body=body, condition=condition, trip_count=trips):
                loop: dict[str, Any] = {"body": self._region_name(body, path)}
                if condition is not None:
                    loop["condition"] = self._region_name(condition, path)
                return "loop", loop if trips is None else {**loop, "trip_count": trips}
            case Branch(regions=regions, operand_counts=counts):
                names = [self._region_name(item, path) for item in regions]
                return "branch", {"regions": names, "operand_counts": list(counts)}
            case _:
                assert_never(task.body)

    def _region_name(self, region: RegionId, path: tuple[str, ...]) -> str:
        if region not in self.regions:
            raise Unwritable(f"{region} is not held by the program", path)
        return self.regions[region]

    def _region(self, region: Any) -> dict[str, Any]:
        box = [[span.start, span.stop] for span in region.box]
        if region.source is None:
            return {"box": box}
        return {"box": box, "from": [[span.start, span.stop] for span in region.source]}

    def _bytes(self, task: DistributedTask, size: Scalar) -> dict[str, Any]:
        return {} if task.attributes.get("op.bytes") == "derived" else {"bytes": _scalar(size)}

    def _collective(self, task: DistributedTask, body: Collective) -> tuple[str, dict[str, Any]]:
        spec = body.spec
        if isinstance(spec, CollectivePermute):
            found: dict[str, Any] = {"pairs": [list(pair) for pair in spec.pairs]}
            if spec.participants != tuple(sorted({rank for pair in spec.pairs for rank in pair})):
                found["participants"] = _ranks(spec.participants)
            if spec.channel != "default":
                found["channel"] = spec.channel
            return "p2p", {**found, **self._bytes(task, spec.message_bytes)}
        found = self._kind(task, spec)
        if spec.axes:
            found["axes"] = list(spec.axes)
        if spec.groups:
            found["groups"] = [list(group) for group in spec.groups]
        return "collective", {**found, **self._members(task, spec), **self._bytes(task, spec.message_bytes)}

    def _members(
        self, task: DistributedTask, spec: AllReduce | ReduceScatter | AllGather | AllToAll | Broadcast
    ) -> dict[str, Any]:
        if spec.groups:
            usual: tuple[int, ...] | RankRange = tuple(dict.fromkeys(rank for group in spec.groups for rank in group))
        else:
            owned = [self.known[item].owners for item in (*task.operand_values, *task.outputs)]
            usual = (union_of(owned) if owned else None) or all_ranks(self.program.mesh.size)
        return {} if spec.participants == usual else {"participants": _ranks(spec.participants)}

    def _kind(
        self, task: DistributedTask, spec: AllReduce | ReduceScatter | AllGather | AllToAll | Broadcast
    ) -> dict[str, Any]:
        match spec:
            case AllReduce():
                return {"coll": "all_reduce", "reduction": spec.reduction.value}
            case ReduceScatter():
                return _given("reduce_scatter", reduction=spec.reduction.value, dim=spec.dim)
            case AllGather():
                return _given("all_gather", dim=spec.dim)
            case AllToAll():
                name = task.operation.name
                if task.operation.dialect == CORE and name in EXCHANGES:
                    return {"coll": name}
                return _given("all_to_all", split=spec.split_dim, concat=spec.concat_dim)
            case Broadcast():
                if "op.root" in task.attributes:
                    return {"coll": "broadcast"}
                return {"coll": "broadcast", "roots": list(spec.roots or (spec.root,))}
            case _:
                assert_never(spec)


def _given(coll: str, **fields: Any) -> dict[str, Any]:
    return {"coll": coll, **{key: item for key, item in fields.items() if item is not None}}
