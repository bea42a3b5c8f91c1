"""The structural verifier: what every reader of a program may rely on.

Checks, in the order in which they are reported: header and canonical form; name, emptiness and digests; unique ids; ordered DAG of dependencies;
program interface; per value its layout, owners and attributes; per task its ranks, dialect, references, single definition, body and attributes; outputs defined; program attributes; then
the same for every region, and how regions are entered. All findings are made in one run, in time linear in the program; rank sets are compared, never expanded by the size of the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, assert_never, cast

from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    PeerTransfer,
    ReduceScatter,
)
from dtir.ir.expr import Scalar, ScalarExpr, Symbol
from dtir.ir.header import REQUIRED_FEATURE, is_content_digest
from dtir.ir.ids import NodeId, RegionId, ValueId
from dtir.ir.ranks import RankRange, has_repeats, highest_rank, same_ranks
from dtir.ir.tasks import (
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    LocalCompute,
    Loop,
    PointToPoint,
    Region,
    Reshard,
)
from dtir.ir.types import is_known_target_dialect
from dtir.ir.values import DistributedValue
from dtir.schema.codec import canonical_json, utf8
from dtir.schema.diagnostics import DiagnosticBag, VerificationReport
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import FrozenDict

if TYPE_CHECKING:
    from dtir.ir.program import DistributedTaskIR, Scope

RESERVED_ATTRIBUTES = frozenset(
    ["model_spec", "workload_spec", "mapping_spec", "inference_mapping_spec", "inference_phase", "batch_size", "query_tokens", "context_tokens", "datatype", "invocation", "block_memory", "scope", "physical_device", "device_id", "route", "queue", "stream", "kernel", "implementation_id", "start", "start_time", "end", "end_time", "duration", "latency", "bandwidth"]
)
"""Attribute names that belong to typed fields, to a binding or to a run record, compared in lower case."""


# -- helpers that stand on their own -----------------------------------------------------------------------------


def reject_reserved_attributes(
    bag: DiagnosticBag, attributes: FrozenDict[Any], reserved: frozenset[str], *path: str
) -> None:
    """Report every reserved key, nested through maps, tuples and sets."""
    if not attributes:
        return
    stack: list[tuple[Any, tuple[str, ...]]] = [(attributes, path)]
    while stack:
        value, location = stack.pop()
        children: list[tuple[Any, tuple[str, ...]]] = []
        if isinstance(value, FrozenDict):
            for key, item in cast("FrozenDict[Any]", value).items():
                if key.lower() in reserved:
                    bag.error(
                        "attribute.reserved",
                        f"{key!r} is a semantic field and is illegal in this IR layer",
                        *location,
                        key or "''",
                        hint="say it in the typed field, a binding or a run record; other attribute names are free",
                    )
                children.append((item, (*location, key or "''")))
        elif isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            children = [(item, (*location, str(index))) for index, item in enumerate(items)]
        elif isinstance(value, frozenset):
            members = sorted(cast("frozenset[Any]", value), key=repr)
            children = [(item, (*location, str(index))) for index, item in enumerate(members)]
        stack.extend(reversed(children))


def verify_unique_ids(bag: DiagnosticBag, items: Iterable[Any], identify: Callable[[Any], Any], *path: str) -> None:
    """Report ids that occur again."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        identifier = identify(item)
        if identifier in seen:
            bag.error(
                "id.duplicate",
                f"duplicate identifier {identifier}",
                *path,
                str(index),
                "id",
                hint="give every value and every task an id of its own",
                subject=(str(identifier),),
            )
        seen.add(identifier)


def verify_known_references(bag: DiagnosticBag, references: Iterable[Any], known: Iterable[Any], *path: str) -> None:
    """Report references to ids that are not declared."""
    known_ids = known if isinstance(known, (set, frozenset, dict)) else set(known)
    for reference in references:
        if reference not in known_ids:
            bag.error(
                "reference.unknown",
                f"unknown reference {reference}",
                *path,
                hint="declare the value, or refer to one that is declared",
                subject=(str(reference),),
            )


def verify_ordered_dag(
    bag: DiagnosticBag,
    items: Sequence[Any],
    identify: Callable[[Any], Any],
    dependencies: Callable[[Any], Sequence[Any]],
    *path: str,
) -> None:
    """Report repeated, self, unknown and backward dependencies: nodes must stand in topological order."""
    known = {identify(item) for item in items}
    seen: set[Any] = set()
    for index, item in enumerate(items):
        identifier = identify(item)
        needed = dependencies(item)
        if needed:
            _verify_dependencies(bag, identifier, needed, known, seen, (*path, str(index), "dependencies"))
        seen.add(identifier)


def _verify_dependencies(
    bag: DiagnosticBag, identifier: Any, needed: Sequence[Any], known: set[Any], seen: set[Any], path: tuple[str, ...]
) -> None:
    if len(needed) > 1 and len(set(needed)) != len(needed):
        bag.error(
            "dag.duplicate_dependency",
            "dependencies must be unique",
            *path,
            hint="name each dependency once",
            subject=(str(identifier),),
        )
    for dependency in needed:
        if dependency in seen and dependency != identifier:
            continue
        ids = (str(identifier), str(dependency))
        if dependency == identifier:
            bag.error(
                "dag.self_dependency", f"{dependency} depends on itself", *path, hint="drop the dependency", subject=ids
            )
        if dependency not in known:
            bag.error(
                "reference.unknown",
                f"dependency {dependency} is not declared",
                *path,
                hint="declare the task, or depend on one that is declared",
                subject=ids,
            )
        elif dependency not in seen:
            bag.error(
                "dag.not_topological",
                f"dependency {dependency} must precede {identifier}",
                *path,
                hint="store canonical DAG nodes in topological order",
                subject=ids,
            )


def verify_nonnegative_scalar(bag: DiagnosticBag, value: Any, *path: str) -> None:
    """Report a quantity that is not a scalar, not finite or negative; symbolic quantities pass."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Symbol, ScalarExpr)):
        bag.error("scalar.invalid", f"unsupported scalar quantity {value!r}", *path)
    elif isinstance(value, float) and not (float("-inf") < value < float("inf")):
        bag.error("scalar.nonfinite", "quantity must be finite", *path)
    elif isinstance(value, (int, float)) and value < 0:
        bag.error("scalar.negative", "quantity must not be negative", *path, hint="count bytes from zero")


# -- the verifier ------------------------------------------------------------------------------------------------


def verify_structure(program: DistributedTaskIR) -> VerificationReport:
    """Every structural finding about a program."""
    return _Verifier(program).run()


class _Verifier:
    """One run over one program; remembers what it has already judged of shared rank sets and types."""

    def __init__(self, program: DistributedTaskIR) -> None:
        self.program = program
        self.bag = DiagnosticBag()
        self.axis_names = frozenset(program.mesh.axis_names)
        self.mesh_size = program.mesh.size
        self.regions = {region.id: region for region in program.regions}
        # Shared objects are judged once, by identity: the program keeps them alive during the run.
        self.ranks_in_mesh: set[int] = set()
        self.types_without_reserved: set[int] = set()

    def run(self) -> VerificationReport:
        program, bag = self.program, self.bag
        self._verify_header()
        self._verify_canonical()
        self._verify_identity()
        verify_unique_ids(bag, program.values, _id_of, "values")
        verify_unique_ids(bag, program.tasks, _id_of, "tasks")
        verify_ordered_dag(bag, program.tasks, _id_of, _dependencies_of, "tasks")
        self._verify_scope(program, ())
        reject_reserved_attributes(bag, program.attributes, RESERVED_ATTRIBUTES, "attributes")
        self._verify_regions()
        self._verify_issue()
        return bag.report()

    # header, canonical form, identity

    def _verify_header(self) -> None:
        header, bag = self.program.header, self.bag
        wanted, version = self.program.SCHEMA_NAME, self.program.SCHEMA_VERSION
        if header.schema_name != wanted:
            bag.error("schema.name", f"expected {wanted!r}, got {header.schema_name!r}", "header", "schema_name")
        if header.schema_version != version:
            bag.error("schema.version", f"expected {version}, got {header.schema_version}", "header", "schema_version")
        if REQUIRED_FEATURE not in header.feature_set:
            bag.error(
                "schema.feature_epoch",
                f"missing required feature epoch(s): {REQUIRED_FEATURE}",
                "header",
                "feature_set",
                hint="build headers with make_header",
            )

    def _verify_canonical(self) -> None:
        """One finding for the first thing that has no canonical form: open data and text are the only places where that can be."""
        try:
            for part in _open_parts(self.program):
                if isinstance(part, str):
                    if not part.isascii():
                        utf8(part)
                else:
                    utf8(canonical_json(part))
        except SerializationError as error:
            self.bag.error(
                "serialization.unsupported",
                str(error),
                "<snapshot>",
                hint="keep to null, bool, int, finite float, text, bytes, tuples, frozensets, maps and registered records",
            )

    def _verify_identity(self) -> None:
        program, bag = self.program, self.bag
        if not program.name:
            bag.error("distributed.name", "distributed program name must not be empty", "name", hint="name the program")
        if not program.tasks or not program.values:
            bag.error(
                "distributed.empty",
                "distributed program requires tasks and values",
                "tasks",
                hint="a program has at least one value and one task",
            )
        if not is_content_digest(program.source_model_digest):
            bag.error(
                "distributed.source_digest",
                "source_model_digest must be a canonical digest",
                "source_model_digest",
                hint="40 lower-case hex digits",
            )
        elif program.source_model_digest not in program.header.parent_digests:
            bag.error(
                "distributed.parent_digest",
                "source model digest must be retained in header.parent_digests",
                "header",
                "parent_digests",
                hint="build the header with parent_digests=(source_model_digest,)",
            )

    # values and tasks of the program or of one region

    def _verify_scope(self, scope: Scope, prefix: tuple[str, ...]) -> None:
        bag = self.bag
        value_ids = {value.id for value in scope.values}
        verify_known_references(bag, scope.inputs, value_ids, *prefix, "inputs")
        verify_known_references(bag, scope.outputs, value_ids, *prefix, "outputs")
        if len(set(scope.inputs)) != len(scope.inputs):
            bag.error("distributed.duplicate_input", "distributed inputs must be unique", *prefix, "inputs")
        if not isinstance(scope, Region) and len(set(scope.outputs)) != len(scope.outputs):
            bag.error("distributed.duplicate_output", "distributed outputs must be unique", *prefix, "outputs")
        for index, value in enumerate(scope.values):
            self._verify_value(value, (*prefix, "values", str(index)))
        defined = set(scope.inputs)
        for index, task in enumerate(scope.tasks):
            self._verify_task(task, value_ids, defined, (*prefix, "tasks", str(index)))
        for output in scope.outputs:
            if output in value_ids and output not in defined:
                bag.error(
                    "dataflow.undefined_output",
                    f"distributed output {output} is not defined",
                    *prefix,
                    "outputs",
                    hint="let a task produce it, or list it as an input",
                    subject=(str(output),),
                )

    def _verify_value(self, value: DistributedValue, path: tuple[str, ...]) -> None:
        bag, sharding = self.bag, value.sharding
        subject = (str(value.id),)
        if len(sharding.dimension_axes) != len(value.type.shape):
            bag.error(
                "sharding.rank",
                "sharding dimension count must equal tensor rank",
                *path,
                "sharding",
                "dimension_axes",
                hint=f"{len(sharding.dimension_axes)} axis lists for {len(value.type.shape)} dims: give one (possibly empty) list per dim",
                subject=subject,
            )
        used = sharding.named_axes
        if len(set(used)) != len(used):
            bag.error(
                "sharding.axis_reuse",
                "a mesh axis may appear only once",
                *path,
                "sharding",
                hint="an axis splits one dim or is replicated, not both; split it into sub-axes if two dims need a part",
                subject=subject,
            )
        for axis in used:
            if axis not in self.axis_names:
                bag.error(
                    "sharding.unknown_axis",
                    f"unknown mesh axis {axis!r}",
                    *path,
                    "sharding",
                    hint=f"the mesh has {', '.join(self.program.mesh.axis_names)}",
                    subject=(*subject, axis),
                )
        if not value.owners or has_repeats(value.owners):
            bag.error(
                "ownership.invalid",
                "owners must be non-empty and unique",
                *path,
                "owners",
                hint="list each rank that holds a part once",
                subject=subject,
            )
        self._verify_ranks(value.owners, "owner", (*path, "owners"), subject)
        reject_reserved_attributes(bag, value.attributes, RESERVED_ATTRIBUTES, *path, "attributes")
        reject_reserved_attributes(bag, value.type.attributes, RESERVED_ATTRIBUTES, *path, "type", "attributes")

    def _verify_ranks(self, ranks: Sequence[int], what: str, path: tuple[str, ...], subject: tuple[str, ...]) -> None:
        if not ranks or id(ranks) in self.ranks_in_mesh:
            return
        if highest_rank(ranks) < self.mesh_size:
            self.ranks_in_mesh.add(id(ranks))
            return
        outside = [ranks[-1]] if isinstance(ranks, RankRange) else [rank for rank in ranks if rank >= self.mesh_size]
        for rank in outside:
            self.bag.error(
                "rank.unknown",
                f"{what} rank {rank} is outside the logical mesh",
                *path,
                hint=f"the mesh has ranks 0 to {self.mesh_size - 1}",
                subject=subject,
            )

    def _verify_task(
        self, task: DistributedTask, value_ids: set[ValueId], defined: set[ValueId], path: tuple[str, ...]
    ) -> None:
        bag, subject = self.bag, (str(task.id),)
        if not task.ranks or has_repeats(task.ranks):
            bag.error(
                "rank.invalid",
                "task ranks must be non-empty and unique",
                *path,
                "ranks",
                hint="list each rank that runs the task once",
                subject=subject,
            )
        self._verify_ranks(task.ranks, "task", (*path, "ranks"), subject)
        if is_known_target_dialect(task.operation):
            bag.error(
                "distributed.target_dialect",
                f"target dialect {task.operation.dialect!r} is illegal in DistributedTaskIR",
                *path,
                "operation",
                hint="name the operation, not the library that runs it",
                subject=subject,
            )
        verify_known_references(bag, task.inputs, value_ids, *path, "inputs")
        verify_known_references(bag, task.outputs, value_ids, *path, "outputs")
        if len(set(task.inputs)) != len(task.inputs):
            bag.error(
                "task.duplicate_input",
                "task inputs must be unique",
                *path,
                "inputs",
                hint="name the value once and give its positions in operands",
                subject=subject,
            )
        if len(set(task.outputs)) != len(task.outputs):
            bag.error("task.duplicate_output", "task outputs must be unique", *path, "outputs", subject=subject)
        self._verify_dataflow(task, value_ids, defined, path)
        self._verify_body(task, path)
        reject_reserved_attributes(bag, task.attributes, RESERVED_ATTRIBUTES, *path, "attributes")

    def _verify_dataflow(
        self, task: DistributedTask, value_ids: set[ValueId], defined: set[ValueId], path: tuple[str, ...]
    ) -> None:
        for value in task.inputs:
            if value not in defined and value in value_ids:
                self.bag.error(
                    "dataflow.use_before_definition",
                    f"value {value} is not yet defined",
                    *path,
                    "inputs",
                    hint="place the producer before its readers, or list the value as a program input",
                    subject=(str(task.id), str(value)),
                )
        for value in task.outputs:
            if value in defined:
                self.bag.error(
                    "dataflow.multiple_definition",
                    f"value {value} has multiple definitions",
                    *path,
                    "outputs",
                    hint="give each result a value of its own; a program input counts as defined",
                    subject=(str(task.id), str(value)),
                )
            defined.add(value)

    def _verify_body(self, task: DistributedTask, path: tuple[str, ...]) -> None:
        match task.body:
            case Collective(spec=spec):
                self._verify_collective(task, spec, path)
            case PointToPoint(spec=transfer):
                self._verify_transfer(task, transfer, path)
            case Call(region=region):
                self._verify_entry(task, region, len(task.operand_values), len(task.outputs), (*path, "body", "region"))
            case Loop(body=body, condition=condition):
                count = len(task.operand_values)
                self._verify_entry(task, body, count, len(task.outputs), (*path, "body", "body"))
                if condition is not None:
                    self._verify_entry(task, condition, count, 1, (*path, "body", "condition"))
            case Branch(regions=regions, operand_counts=counts):
                for index, (region, count) in enumerate(zip(regions, counts, strict=True)):
                    self._verify_entry(task, region, count, len(task.outputs), (*path, "body", "regions", str(index)))
                if len(task.operand_values) != 1 + sum(counts):
                    self.bag.error(
                        "region.arity",
                        f"branch takes 1 selector and {sum(counts)} operands, task has {len(task.operand_values)}",
                        *path,
                        "body",
                        subject=(str(task.id),),
                    )
            case LocalCompute() | Reshard() | Control():
                pass
            case _:
                assert_never(task.body)

    def _verify_collective(self, task: DistributedTask, spec: CollectiveSpecVariant, path: tuple[str, ...]) -> None:
        bag, subject = self.bag, (str(task.id),)
        if not same_ranks(spec.participants, task.ranks):
            bag.error(
                "collective.participants",
                "collective participants must equal task ranks",
                *path,
                "body",
                hint=f"{len(spec.participants)} participants, {len(task.ranks)} ranks: list the union of the groups in both",
                subject=subject,
            )
        verify_nonnegative_scalar(bag, spec.message_bytes, *path, "body", "message_bytes")
        match spec:
            case CollectivePermute(pairs=pairs):
                members = set(spec.participants) if not isinstance(spec.participants, RankRange) else spec.participants
                for source, destination in pairs:
                    if source not in members or destination not in members:
                        bag.error(
                            "peer.endpoints",
                            f"pair {source} -> {destination} names a rank that does not take part",
                            *path,
                            "body",
                            "pairs",
                            subject=subject,
                        )
            case AllReduce() | ReduceScatter() | AllGather() | AllToAll() | Broadcast():
                self._verify_groups(task, spec, path)
            case _:
                assert_never(spec)

    def _verify_groups(
        self,
        task: DistributedTask,
        spec: AllReduce | ReduceScatter | AllGather | AllToAll | Broadcast,
        path: tuple[str, ...],
    ) -> None:
        for axis in spec.axes:
            if axis not in self.axis_names:
                self.bag.error(
                    "sharding.unknown_axis",
                    f"unknown mesh axis {axis!r}",
                    *path,
                    "body",
                    "axes",
                    hint=f"the mesh has {', '.join(self.program.mesh.axis_names)}",
                    subject=(str(task.id), axis),
                )
        if spec.groups and not _groups_cover(spec.groups, spec.participants):
            self.bag.error(
                "collective.participants",
                "the groups must name each participant exactly once",
                *path,
                "body",
                "groups",
                hint=f"{sum(len(group) for group in spec.groups)} group members, {len(spec.participants)} participants",
                subject=(str(task.id),),
            )

    def _verify_transfer(self, task: DistributedTask, transfer: PeerTransfer, path: tuple[str, ...]) -> None:
        if {transfer.source_rank, transfer.destination_rank} != set(task.ranks):
            self.bag.error(
                "peer.endpoints",
                "peer transfer endpoints must equal task ranks",
                *path,
                "body",
                hint=f"the transfer is {transfer.source_rank} -> {transfer.destination_rank}: run the task on these two ranks",
                subject=(str(task.id),),
            )
        verify_nonnegative_scalar(self.bag, transfer.message_bytes, *path, "body", "message_bytes")

    # regions and issue lists

    def _verify_entry(
        self, task: DistributedTask, region_id: RegionId, operands: int, results: int, path: tuple[str, ...]
    ) -> None:
        region = self.regions.get(region_id)
        subject = (str(task.id), str(region_id))
        if region is None:
            self.bag.error("region.unknown", f"{region_id} is not held by the program", *path, subject=subject)
            return
        if len(region.inputs) != operands or len(region.outputs) != results:
            self.bag.error(
                "region.arity",
                f"region {region.name!r} takes {len(region.inputs)} and yields {len(region.outputs)}, "
                f"entered with {operands} for {results}",
                *path,
                hint="operands match the region's inputs, results its outputs, one to one",
                subject=subject,
            )

    def _verify_regions(self) -> None:
        program, bag = self.program, self.bag
        if not program.regions:
            return
        verify_unique_ids(bag, program.regions, _id_of, "regions")
        known_tasks = {task.id for task in program.tasks}
        for index, region in enumerate(program.regions):
            path = ("regions", str(index))
            verify_unique_ids(bag, region.values, _id_of, *path, "values")
            verify_unique_ids(bag, region.tasks, _id_of, *path, "tasks")
            repeated = [task.id for task in region.tasks if task.id in known_tasks]
            for identifier in repeated:
                bag.error(
                    "id.duplicate",
                    f"duplicate identifier {identifier}",
                    *path,
                    "tasks",
                    hint="a task id is unique in the whole program, regions included",
                    subject=(str(identifier),),
                )
            known_tasks.update(task.id for task in region.tasks)
            verify_ordered_dag(bag, region.tasks, _id_of, _dependencies_of, *path, "tasks")
            self._verify_scope(region, path)
            reject_reserved_attributes(bag, region.attributes, RESERVED_ATTRIBUTES, *path, "attributes")
        self._verify_region_order()

    def _verify_region_order(self) -> None:
        """No region enters itself, directly or through others (depth first, own stack)."""
        entered = {
            region.id: [target for target in entered_regions(region.tasks) if target in self.regions]
            for region in self.program.regions
        }
        state: dict[RegionId, int] = {}
        for start in entered:
            stack: list[tuple[RegionId, int]] = [(start, 0)] if start not in state else []
            while stack:
                region, position = stack.pop()
                state[region] = 1
                if position == len(entered[region]):
                    state[region] = 2
                    continue
                stack.append((region, position + 1))
                target = entered[region][position]
                if state.get(target) == 1:
                    self.bag.error(
                        "region.cycle",
                        f"region {self.regions[region].name!r} enters {self.regions[target].name!r}, which is already running",
                        "regions",
                        hint="recursion is not part of the IR: use a Loop",
                        subject=(str(region), str(target)),
                    )
                elif target not in state:
                    stack.append((target, 0))

    def _verify_issue(self) -> None:
        if not self.program.issue:
            return
        known = {task.id for task in self.program.all_tasks()}
        for index, issue in enumerate(self.program.issue):
            path = ("issue", str(index))
            if issue.rank >= self.mesh_size:
                self.bag.error("rank.unknown", f"issue rank {issue.rank} is outside the logical mesh", *path, "rank")
            for position, step in enumerate(issue.steps):
                verify_known_references(self.bag, step, known, *path, "steps", str(position))


def entered_regions(tasks: Iterable[DistributedTask]) -> list[RegionId]:
    """The regions that a task list enters, in order, with repetitions."""
    found: list[RegionId] = []
    for task in tasks:
        match task.body:
            case Call(region=region):
                found.append(region)
            case Loop(body=body, condition=condition):
                found += [body] if condition is None else [condition, body]
            case Branch(regions=regions):
                found += regions
            case LocalCompute() | Collective() | PointToPoint() | Reshard() | Control():
                pass
            case _:
                assert_never(task.body)
    return found


def _groups_cover(groups: Sequence[Sequence[int]], participants: Sequence[int]) -> bool:
    if len(groups) == 1:
        return same_ranks(groups[0], participants) and not has_repeats(groups[0])
    if sum(len(group) for group in groups) != len(participants):
        return False
    return len({rank for group in groups for rank in group} ^ set(participants)) == 0


def _id_of(item: Any) -> Any:
    return item.id


def _dependencies_of(task: DistributedTask) -> tuple[NodeId, ...]:
    return task.dependencies


def _open_parts(program: DistributedTaskIR) -> Iterable[Any]:
    """Text fields and open data of a program: the parts whose content the constructors leave free; shared ones once."""
    seen: set[int] = set()

    def fresh(part: Any) -> bool:
        if id(part) in seen:
            return False
        seen.add(id(part))
        return True

    yield program.name
    yield program.attributes
    yield program.semantic
    yield from program.mesh.axis_names
    yield program.mesh.name
    for _, scope in program.scopes():
        for value in scope.values:
            if value.name:
                yield value.name
            if value.attributes:
                yield value.attributes
            if fresh(value.type) and not (value.type.is_static and not value.type.attributes):
                yield value.type
            if fresh(value.lineage):
                yield value.lineage.transform
        for task in scope.tasks:
            if task.name:
                yield task.name
            if task.attributes:
                yield task.attributes
            if fresh(task.semantic):
                yield task.semantic
            if fresh(task.lineage):
                yield task.lineage.transform
            for effect in task.effects:
                yield effect.resource
            quantity = _quantity(task)
            if isinstance(quantity, ScalarExpr):
                yield quantity


def _quantity(task: DistributedTask) -> Scalar | None:
    match task.body:
        case Collective(spec=spec):
            return spec.message_bytes
        case PointToPoint(spec=spec):
            return spec.message_bytes
        case _:
            return None
