"""Reading tasks: kind, operation, ranks, dataflow, and what each kind has of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dtir.importers.yaml.collective import CollectiveReader
from dtir.importers.yaml.document import Entries, Items, Node, to_plain
from dtir.importers.yaml.fields import Fields, as_integer
from dtir.importers.yaml.origin import read_label, read_lineage, read_uid
from dtir.importers.yaml.problems import Problems, suggestion
from dtir.importers.yaml.ranks import read_ranks, union_of
from dtir.importers.yaml.sealed import read_data, read_record
from dtir.importers.yaml.vocabulary import COMMON_TASK_KEYS, KIND_KEYS
from dtir.ir import (
    EMPTY_SEMANTIC,
    Branch,
    Call,
    Collective,
    Control,
    DistributedTask,
    DistributedTaskSemantic,
    DistributedValue,
    Effect,
    EffectKind,
    LocalCompute,
    LogicalMesh,
    Loop,
    NodeId,
    OperationName,
    PipelineSlot,
    PointToPoint,
    RankRange,
    RegionId,
    Reshard,
    ReshardKind,
    ReshardRegion,
    Span,
    Symbol,
    TaskBodyVariant,
    all_ranks,
)
from dtir.ops import CORE, OpDef, OpError, find_op, similar_ops
from dtir.ops.contract import parse_spec
from dtir.schema.frozen import FrozenDict
from dtir.schema.refinements import ValueConstraint

_TYPED = frozenset(
    {"id", "kind", "op", "in", "out", "ranks", "deps", "effects", "pp", "note", "completes", "name", "uid", "lineage",
     "operation", "semantic", "attributes"}
)  # fmt: skip
"""Keys that have a field of their own; every other one is a parameter ``op.<key>``."""

_JUDGED = frozenset({"intro", "sync", "c_oracle", "c_by_rank", "include_halo", "route"})
_ALIASES = {"max": "maximum", "min": "minimum"}
"""Reductions that mean the elementwise operator when they are given several operands."""


def task_id(program: str, name: str) -> NodeId:
    """The id of a task of a YAML program."""
    return NodeId.derive("yaml", program, name)


@dataclass(frozen=True, slots=True)
class Draft:
    """A task as far as its keys tell, before its references are looked up."""

    fields: Fields
    name: str
    id: NodeId


class TaskReader:
    """Reads the tasks of one program or of its oracle."""

    def __init__(
        self,
        program: str,
        mesh: LogicalMesh,
        values: Mapping[str, DistributedValue],
        symbols: Mapping[str, Symbol],
        problems: Problems,
        declared: Collection[str],
        regions: Mapping[str, RegionId] | None = None,
    ) -> None:
        self.program = program
        # Names of values that the document declares, those that could not be read among them: one cause, one finding.
        self.declared = declared
        self.regions = regions or {}
        self.mesh = mesh
        self.values = values
        self.problems = problems
        self.collectives = CollectiveReader(mesh, symbols)
        self.ids: dict[str, NodeId] = {}

    def draft(self, node: Node, path: tuple[str, ...], *prefix: str) -> Draft | None:
        """The name and id of a task, so that others can refer to it."""
        if not isinstance(node, Entries):
            hint = "write {id: t1, kind: local, op: relu, in: [x], out: [y]}"
            self.problems.error("yaml.type", "a task must be a mapping", path, node.line, hint)
            return None
        fields = Fields(node, path, self.problems)
        name = fields.text("id", "give the task an id")
        if name is None:
            return None
        identifier = read_uid(fields, NodeId) or NodeId.derive("yaml", self.program, *prefix, name)
        self.ids.setdefault(name, identifier)
        return Draft(fields, name, identifier)

    def read(self, draft: Draft) -> DistributedTask | None:
        """One task; None when something of it cannot be read (which is then among the problems)."""
        try:
            return self._read(draft)
        except (TypeError, ValueError) as error:
            # What a record refuses about itself, say participants that are listed twice.
            path, line = draft.fields.path, draft.fields.node.line
            self.problems.error("yaml.value", f"task {draft.name} cannot be built: {error}", path, line)
            return None

    def _read(self, draft: Draft) -> DistributedTask | None:
        fields = draft.fields
        before = self.problems.errors()
        kind = fields.one_of("kind", KIND_KEYS, f"what the task is: {', '.join(KIND_KEYS)}")
        inputs, outputs = self._values(fields, "in"), self._values(fields, "out")
        if kind is None or inputs is None or outputs is None:
            return None
        operation, operator = self._operation(fields, kind, len(inputs))
        attributes = self._attributes(fields, kind, operator)
        if operator is not None:
            self._check_call(fields, operator, len(inputs))
        ranks = self._ranks(fields, kind, inputs, outputs)
        body, ranks = self._body(fields, kind, inputs, outputs, ranks, attributes)
        dependencies, completes = self._tasks(fields, "deps"), self._tasks(fields, "completes")
        effects, slot = self._effects(fields), self._slot(fields)
        lineage, semantic = read_lineage(fields), read_record(fields, "semantic", DistributedTaskSemantic)
        if body is None or operation is None or self.problems.errors() > before:
            return None
        unique = tuple(dict.fromkeys(value.id for value in inputs))
        positions = tuple(unique.index(value.id) for value in inputs)
        return DistributedTask(
            id=draft.id,
            body=body,
            operation=operation,
            ranks=ranks,
            inputs=unique,
            outputs=tuple(value.id for value in outputs),
            dependencies=dependencies,
            lineage=lineage,
            effects=effects,
            semantic=EMPTY_SEMANTIC if semantic is None else semantic,
            attributes=FrozenDict(attributes),
            name=read_label(fields, draft.name),
            operands=positions if len(unique) != len(inputs) else (),
            completes=completes,
            pipeline=slot,
        )

    # -- references ---------------------------------------------------------------------------------------------------

    def _values(self, fields: Fields, key: str) -> list[DistributedValue] | None:
        names = fields.words(key)
        if names is None:
            if fields.has(key):
                return None
            names = []
        for name in names:
            if name not in self.declared:
                self._unknown(fields, key, "value", name, self.declared)
        return None if any(name not in self.values for name in names) else [self.values[name] for name in names]

    def _tasks(self, fields: Fields, key: str) -> tuple[NodeId, ...]:
        names = fields.words(key) or []
        for name in names:
            if name not in self.ids:
                self._unknown(fields, key, "task", name, self.ids)
        return tuple(self.ids[name] for name in names if name in self.ids)

    def _unknown(self, fields: Fields, key: str, what: str, name: str, known: Iterable[str]) -> None:
        fields.value(key, f"{key} names {what} {name!r}, which the document does not declare",
                     suggestion(name, known), "reference.unknown")  # fmt: skip

    # -- operation and parameters ------------------------------------------------------------------------------------

    def _operation(self, fields: Fields, kind: str, operands: int) -> tuple[OperationName | None, OpDef | None]:
        given = fields.text("operation")
        word = fields.text("coll" if kind == "collective" else "op") or kind
        if kind == "local" and not fields.has("op"):
            fields.missing("op", "name the operator, for example einsum")
            return None, None
        text = given or word
        dialect, dot, name = text.partition(".")
        if not dot:
            dialect, name = CORE, text
        if kind == "local" and operands > 1 and name in _ALIASES and given is None:
            name = _ALIASES[name]
        if not ValueConstraint.STABLE_NAME.holds(dialect) or not ValueConstraint.STABLE_NAME.holds(name):
            fields.value(
                "op" if fields.has("op") else "kind", f"{text!r} is no operator name: letters, digits, '_' and '-'"
            )
            return None, None
        operation = OperationName(dialect, name)
        operator = find_op(operation) if kind == "local" else None
        if kind == "local" and operator is None and (close := similar_ops(name, dialect)):
            message, hint = f"operator {name!r} is not known", f"did you mean {close[0]}?"
            self.problems.warning("yaml.operator", message, (*fields.path, "op"), fields.line("op"), hint)
        return operation, operator

    def _check_call(self, fields: Fields, operator: OpDef, operands: int) -> None:
        try:
            operator.check_arity(operands)
            if operator.name == "einsum":
                spec = fields.text("spec")
                parse_spec(spec, operands)
        except OpError as error:
            self.problems.warning(
                "yaml.operator", str(error), (*fields.path, "op"), fields.line("op"), operator.summary
            )

    def _attributes(self, fields: Fields, kind: str, operator: OpDef | None) -> dict[str, Any]:
        known = COMMON_TASK_KEYS | KIND_KEYS[kind] | _JUDGED | (operator.parameters if operator else frozenset[str]())
        taken = _TYPED | (self.collectives.fields_of(kind))
        attributes: dict[str, Any] = {}
        # The parameters of an operator that is not known cannot be known either.
        open_ended = kind == "local" and operator is None
        for key in fields.other_keys(known):
            name = f"op.{key}"
            attributes[name] = to_plain(fields.node.entries[key]) if open_ended else fields.kept(key, name, known)
        for key, node in fields.node.entries.items():
            if key in known and key not in taken:
                attributes[f"op.{key}"] = to_plain(node)
        attributes.update(read_data(fields, "attributes"))
        if (note := fields.text("note")) is not None:
            attributes["note"] = note
        return attributes

    # -- ranks and bodies ---------------------------------------------------------------------------------------------

    def _ranks(
        self, fields: Fields, kind: str, inputs: list[DistributedValue], outputs: list[DistributedValue]
    ) -> tuple[int, ...] | RankRange:
        given = read_ranks(fields, "ranks")
        if given is not None:
            return given
        # A rank computes what it owns of the result; what it lacks of the operands is the verifier's to say.
        owned = [value.owners for value in ((outputs or inputs) if kind == "local" else (*inputs, *outputs))]
        found = union_of(owned) if owned else all_ranks(self.mesh.size)
        if found is None and (kind == "p2p" or fields.has("groups")):
            return ()  # the pairs or groups say who takes part
        if found is None:
            fields.problems.error("yaml.limit", "the ranks of the task are too many to list and no run", fields.path,
                                  fields.node.line, "name them: ranks: {start: 0, stop: 8}")  # fmt: skip
        return found or ()

    def _body(
        self,
        fields: Fields,
        kind: str,
        inputs: list[DistributedValue],
        outputs: list[DistributedValue],
        ranks: tuple[int, ...] | RankRange,
        attributes: dict[str, Any],
    ) -> tuple[TaskBodyVariant | None, tuple[int, ...] | RankRange]:
        match kind:
            case "local":
                return LocalCompute(), ranks
            case "control":
                return Control(), ranks
            case "reshard":
                regions = self._regions(fields)
                halo = fields.text("op") == "halo"
                return (
                    None if regions is None else Reshard(ReshardKind.HALO if halo else ReshardKind.LAYOUT, regions)
                ), ranks
            case "p2p" if not fields.has("pairs"):
                transfer = self.collectives.transfer(fields, inputs, attributes)
                if transfer is None:
                    return None, ranks
                ends = (transfer.source_rank, transfer.destination_rank)
                return PointToPoint(transfer), tuple(ranks) if fields.has("ranks") else tuple(sorted(ends))
            case "call" | "loop" | "branch":
                return self._control_flow(fields, kind), ranks
            case _:
                found = self.collectives.read(fields, kind, inputs, outputs, ranks, attributes)
                if found is None:
                    return None, ranks
                spec = found
                return Collective(spec), ranks if fields.has("ranks") else spec.participants

    def _control_flow(self, fields: Fields, kind: str) -> TaskBodyVariant | None:
        if kind == "call":
            region = self._region(fields, fields.text("region", "the region that runs"))
            return None if region is None else Call(region)
        if kind == "loop":
            body = self._region(fields, fields.text("body", "the region that runs again and again"))
            named = fields.text("condition")
            condition = self._region(fields, named) if named is not None else None
            return None if body is None else Loop(body, condition, fields.integer("trip_count"))
        regions = [self._region(fields, name) for name in fields.words("regions") or []]
        counts = fields.integers("operand_counts") or []
        if len(regions) != len(counts):
            fields.value(
                "operand_counts", f"{len(counts)} operand counts for {len(regions)} regions", "one count a region"
            )
            return None
        return Branch(tuple(region for region in regions if region is not None), tuple(counts))

    def _region(self, fields: Fields, name: str | None) -> RegionId | None:
        if name is not None and name not in self.regions:
            fields.problems.error("reference.unknown", f"there is no region {name!r}", fields.path, fields.node.line,
                                  suggestion(name, self.regions))  # fmt: skip
        return self.regions.get(name) if name is not None else None

    def _regions(self, fields: Fields) -> tuple[ReshardRegion, ...] | None:
        nodes = fields.items("regions")
        if nodes is None:
            return None if fields.has("regions") else ()
        regions: list[ReshardRegion] = []
        for index, node in enumerate(nodes):
            path = (*fields.path, "regions", str(index))
            if not isinstance(node, Entries):
                self.problems.error(
                    "yaml.type", "a region must be a mapping", path, node.line, "write {box: [[0, 4], [0, 3]]}"
                )
                return None
            own = Fields(node, path, self.problems)
            own.refuse({"box", "from"})
            box = own.each("box", _span, "a range [start, stop] with 0 <= start <= stop")
            source = own.each("from", _span, "a range [start, stop] with 0 <= start <= stop")
            if box is None:
                if not own.has("box"):
                    own.missing("box", "the block of the destination: one range a dim")
                return None
            regions.append(ReshardRegion(tuple(box), tuple(source) if source is not None else None))
        return tuple(regions)

    # -- effects and pipeline ----------------------------------------------------------------------------------------

    def _effects(self, fields: Fields) -> tuple[Effect, ...]:
        effects: list[Effect] = []
        for index, node in enumerate(fields.items("effects") or []):
            path = (*fields.path, "effects", str(index))
            if not isinstance(node, Entries):
                self.problems.error(
                    "yaml.type", "an effect must be a mapping", path, node.line, "write {kind: write, resource: buf}"
                )
                continue
            own = Fields(node, path, self.problems)
            own.refuse({"kind", "resource"})
            kind = own.one_of("kind", [item.value for item in EffectKind], "what is done to the resource")
            resource = own.text("resource", "name the resource")
            if kind is not None and resource is not None:
                effects.append(Effect(EffectKind(kind), resource))
        return tuple(effects)

    def _slot(self, fields: Fields) -> PipelineSlot | None:
        if not fields.has("pp"):
            return None
        node = fields.node.entries["pp"]
        if not isinstance(node, Entries):
            fields.wrong("pp", "a mapping {stage, mb, phase}")
            return None
        own = Fields(node, (*fields.path, "pp"), self.problems)
        own.refuse({"stage", "mb", "phase", "chunk"})
        stage, microbatch, chunk = own.integer("stage"), own.integer("mb"), own.integer("chunk")
        phase = own.text("phase", "F or B")
        for key, found in (("stage", stage), ("mb", microbatch)):
            if found is None and not own.has(key):
                own.missing(key, "stages and microbatches are counted from 0")
        if stage is None or microbatch is None or phase is None:
            return None
        return PipelineSlot(stage, microbatch, phase, chunk or 0)


def _span(node: Node) -> Span | None:
    if not isinstance(node, Items) or len(node.items) != 2:
        return None
    start, stop = (as_integer(item) for item in node.items)
    return Span(start, stop) if start is not None and stop is not None and 0 <= start <= stop else None
