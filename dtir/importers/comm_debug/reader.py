"""A CommDebugMode tree as a program: collectives by module and phase, parameters with their placements.

The tree counts, it does not order and does not measure: modules stand in the order of the tree forward and against it
backward, message sizes are symbols, and the members of groups are the whole mesh.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dtir._version import __version__
from dtir.importers.base import Imported, Source, imported, refused
from dtir.importers.comm_debug.placements import Placement, mesh_of, placements_of
from dtir.importers.comm_debug.tree import BACKWARD, FORWARD, Module, read_modules
from dtir.importers.rank_set.events import MOST_RANKS, CallKind
from dtir.importers.rank_set.naming import program_name
from dtir.importers.rank_set.plain import mapping, parse_json, text_of
from dtir.importers.rank_set.words import call_kind
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, Broadcast, CollectiveSpecVariant, ReduceScatter
from dtir.ir.expr import BindingAxis, Scalar, Symbol
from dtir.ir.header import make_header
from dtir.ir.ids import Lineage, NodeId, ValueId
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, DistributedTaskIR
from dtir.ir.ranks import Ranks, all_ranks
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import Partial, ShardingSpec
from dtir.ir.tasks import Collective, Control, DistributedTask, LocalCompute
from dtir.ir.types import OperationName, TensorType
from dtir.ir.values import DistributedValue, ValueRole
from dtir.schema.diagnostics import DiagnosticBag, DiagnosticSet
from dtir.schema.frozen import FrozenDict
from dtir.schema.result import Err, Ok

FORMAT = "comm-debug"
DIALECT = "commdebug"
UNSTATED = "unstated"
MOST_TASKS = 1_000_000

_LINEAGE = Lineage.root(f"{DIALECT}.import")
_WORD = re.compile(r"[^A-Za-z0-9_]")
_COMMUNICATION = ("c10d", "_c10d_functional", "c10d_functional")


def fact(name: str) -> str:
    """The key of what a tree says among attributes."""
    return f"{DIALECT}.{name}"


def read_comm_debug(source: Source) -> Imported:
    """The program of a tree, and what was found on the way."""
    match parse_json(source.text or "", "the CommDebugMode tree"):
        case Err(error):
            return refused(source.label, error, format=FORMAT, digest=source.digest())
        case Ok(value):
            root = mapping(value)
    bag = DiagnosticBag()
    modules, absurd = read_modules(root)
    if absurd:
        bag.warning("commdebug.malformed", f"{absurd} counts of collectives are no counts and are left out")
    mesh = _mesh(modules, bag)
    program = _Lowering(source, modules, mesh, bag).program()
    return imported(source, FORMAT, program, DiagnosticSet(tuple(bag.report())))


def _mesh(modules: Sequence[Module], bag: DiagnosticBag) -> LogicalMesh:
    """The mesh that operations name most; of one rank when they name none."""
    seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    for module in modules:
        for operations in module.operations.values():
            for item in operations:
                found = mesh_of(text_of(item.get("device_mesh")))
                if found:
                    seen[tuple(found.items())] += 1
    if not seen:
        bag.warning(
            "commdebug.mesh",
            "no operation of the tree names its device mesh: who takes part in a collective is not known, one rank is shown",
            hint="the trees of programs with DTensor operations name it",
        )
        return LogicalMesh("mesh", (MeshAxis("rank", 1),))
    if len(seen) > 1:
        bag.info("commdebug.meshes", f"the tree names {len(seen)} device meshes; the most frequent is the program's")
    axes = seen.most_common(1)[0][0]
    mesh = LogicalMesh("mesh", tuple(MeshAxis(name, size) for name, size in axes))
    if mesh.size > MOST_RANKS:
        bag.error("commdebug.mesh", f"a device mesh of {mesh.size} ranks is larger than any machine; one rank is shown")
        return LogicalMesh("mesh", (MeshAxis("rank", 1),))
    return mesh


class _Lowering:
    def __init__(self, source: Source, modules: Sequence[Module], mesh: LogicalMesh, bag: DiagnosticBag) -> None:
        self._source = source
        self._name = program_name(source.name)
        self._modules = modules
        self._mesh = mesh
        self._bag = bag
        self._everyone: Ranks = all_ranks(mesh.size)
        self._tasks: list[DistributedTask] = []
        self._values: list[DistributedValue] = []
        self._unknown: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self._left_out = 0
        self._collectives = 0

    def program(self) -> DistributedTaskIR:
        for module in self._modules:
            self._parameters(module)
        for module in self._modules:
            self._phase(module, FORWARD)
        for module in reversed(self._modules):
            self._phase(module, BACKWARD)
        self._note()
        if not self._values:
            layout = ShardingSpec((), (), varying=self._mesh.axis_names)
            self._values.append(self._value("nothing", TensorType((), "opaque"), layout, {}))
        if not self._tasks:
            self._add("nothing", Control(), "nothing", {})
        ids = tuple(value.id for value in self._values)
        digest = self._source.digest()
        return DistributedTaskIR(
            self._name,
            digest,
            self._mesh,
            tuple(self._values),
            tuple(self._tasks),
            ids,
            (),
            attributes=FrozenDict(
                {fact("counts"): FrozenDict(dict(sorted(self._total().items()))), fact("modules"): len(self._modules)}
            ),
            header=make_header(NATIVE_SCHEMA, NATIVE_VERSION, parent_digests=(digest,), producer_version=__version__),
        )

    def _total(self) -> Counter[str]:
        """Calls of the whole tree: those of its root."""
        return self._modules[0].counted[FORWARD] + self._modules[0].counted[BACKWARD]

    def _note(self) -> None:
        bag = self._bag
        if self._collectives:
            bag.info(
                "commdebug.sizes",
                f"the tree counts {self._collectives} collectives and says neither their sizes nor their groups nor their exact "
                "order: sizes are symbols, groups the whole mesh",
            )
        if self._unknown:
            shown = ", ".join(sorted(self._unknown)[:5])
            bag.warning("commdebug.kind_unknown", f"{self._unknown.total()} calls are no known collective: {shown}")
        if self._left_out:
            bag.error("commdebug.too_many", f"{self._left_out} calls beyond the first {MOST_TASKS} are left out")

    # -- parameters ------------------------------------------------------------------------------------------------------------

    def _parameters(self, module: Module) -> None:
        for name, text in module.parameters:
            label = self._label(f"{module.name}.{name}")
            placements = placements_of(text)
            attributes = {fact("placements"): text}
            if placements is None or len(placements) != len(self._mesh.axes):
                self._bag.warning(
                    "commdebug.placements",
                    f"the placements {text[:80]!r} of {label} do not fit a mesh of {len(self._mesh.axes)} axes; it is shown per rank",
                )
                layout = ShardingSpec((), (), varying=self._mesh.axis_names)
                self._values.append(self._value(label, TensorType((), UNSTATED), layout, attributes))
                continue
            rank = max((item.dim for item in placements if item.dim is not None), default=-1) + 1
            # Neither shape nor rank is in the tree: as many dims are shown as the placements speak of.
            shape: tuple[Scalar, ...] = tuple(
                Symbol(_word(f"{label}_{dim}"), BindingAxis.WORKLOAD) for dim in range(rank)
            )
            layout = _layout(placements, rank, self._mesh)
            self._values.append(self._value(label, TensorType(shape, UNSTATED), layout, attributes))

    def _value(
        self, label: str, type: TensorType, layout: ShardingSpec, attributes: Mapping[str, Any]
    ) -> DistributedValue:
        return DistributedValue(
            ValueId.derive(DIALECT, self._name, label),
            type,
            ValueRole.PARAMETER,
            layout,
            self._everyone,
            _LINEAGE,
            attributes=FrozenDict(attributes),
            name=label,
        )

    # -- tasks -----------------------------------------------------------------------------------------------------------------

    def _phase(self, module: Module, phase: str) -> None:
        operations = [text_of(item.get("name")) for item in module.operations[phase]]
        local = Counter(name for name in operations if name and not name.startswith(_COMMUNICATION))
        if local:
            most = FrozenDict(dict(local.most_common(8)))
            facts = {fact("operations"): local.total(), fact("most_frequent"): most, fact("phase"): phase}
            self._add(f"{module.name} {phase}", LocalCompute(), "local", facts)
        for name, kind in self._calls(module, phase):
            if len(self._tasks) >= MOST_TASKS:
                self._left_out += 1
                continue
            size = Symbol(f"bytes_{self._collectives}", BindingAxis.WORKLOAD)
            self._collectives += 1
            facts = {"op_name": name, fact("module"): module.name, fact("phase"): phase, fact("kind"): kind.value}
            self._add(f"{module.name} {name}", Collective(self._spec(kind, size)), kind.value, facts)

    def _calls(self, module: Module, phase: str) -> Iterator[tuple[str, CallKind]]:
        for name, count in module.calls[phase].items():
            kind = call_kind(name.rpartition(".")[2])
            if kind is None:
                self._unknown[name] += count
                continue
            for _ in range(count):
                yield name, kind

    def _spec(self, kind: CallKind, size: Scalar) -> CollectiveSpecVariant:
        members = self._everyone
        match kind:
            case CallKind.ALL_REDUCE | CallKind.REDUCE:
                return AllReduce(members, size, ReductionKind.SUM)
            case CallKind.BARRIER:
                return AllReduce(members, 0, ReductionKind.SUM)
            case CallKind.ALL_GATHER | CallKind.GATHER:
                return AllGather(members, size)
            case CallKind.REDUCE_SCATTER:
                return ReduceScatter(members, size, ReductionKind.SUM)
            case CallKind.ALL_TO_ALL:
                return AllToAll(members, size)
            case CallKind.BROADCAST | CallKind.SCATTER:
                return Broadcast(members, size, 0)

    def _label(self, name: str) -> str:
        count = self._names[name]
        self._names[name] += 1
        return f"{name}.{count}" if count else name

    def _add(
        self, name: str, body: Collective | Control | LocalCompute, operation: str, facts: Mapping[str, Any]
    ) -> None:
        label = self._label(name)
        before = (self._tasks[-1].id,) if self._tasks else ()
        self._tasks.append(
            DistributedTask(
                NodeId.derive(DIALECT, self._name, label),
                body,
                OperationName(DIALECT, operation),
                self._everyone,
                (),
                (),
                before,
                _LINEAGE,
                attributes=FrozenDict(facts),
                name=label,
            )
        )


def _word(text: str) -> str:
    """A text as the name of a symbol."""
    return "n_" + _WORD.sub("_", text)


def _layout(placements: Sequence[Placement], rank: int, mesh: LogicalMesh) -> ShardingSpec:
    dims: list[list[str]] = [[] for _ in range(rank)]
    replicated: list[str] = []
    pending: list[str] = []
    loose: list[str] = []
    op: ReductionKind | None = None
    for placement, axis in zip(placements, mesh.axis_names, strict=True):
        if placement.kind == "split" and placement.dim is not None:
            dims[placement.dim].append(axis)
        elif placement.kind == "replicated":
            replicated.append(axis)
        elif placement.op is None or (op is not None and placement.op is not op):
            loose.append(axis)
        else:
            op = placement.op
            pending.append(axis)
    partial = Partial(tuple(pending), op) if pending and op is not None else None
    return ShardingSpec(tuple(map(tuple, dims)), tuple(replicated), partial=partial, varying=tuple(loose))
