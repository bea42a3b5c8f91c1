"""Lowers an analysed module to a program: mesh, entry, and one region per further computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dtir._version import __version__
from dtir.importers.hlo.axes import make_rank_space
from dtir.importers.hlo.collectives import CollectiveMaker, GroupTable, placed
from dtir.importers.hlo.context import Lowering
from dtir.importers.hlo.devices import base_opcode
from dtir.importers.hlo.facts import Facts, fact, plain
from dtir.importers.hlo.frontend import AnalysedModule
from dtir.importers.hlo.layouts import Form, Layouts, leaf_shardings, module_form
from dtir.importers.hlo.opcodes import COLLECTIVES
from dtir.importers.hlo.scope import ScopeLowering
from dtir.importers.hlo.shardings import Maximal, Named, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.ir.header import make_header
from dtir.ir.ids import NodeId, ValueId
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, DistributedTaskIR
from dtir.ir.tasks import Control, DistributedTask, Region
from dtir.ir.types import OperationName
from dtir.schema.frozen import FrozenDict

_STRUCTURAL = ("tuple", "get-tuple-element", "parameter")


def lower(
    analysed: AnalysedModule,
    *,
    name: str,
    digest: str,
    form: Form | None = None,
    lowering_type: type[Lowering] = Lowering,
    scope_type: type[ScopeLowering] = ScopeLowering,
    attributes: Mapping[str, Any] | None = None,
) -> DistributedTaskIR:
    """The program of a module.

    Args:
        analysed: a module without faults.
        name: the program's name.
        digest: content digest of the source text (40 hex digits).
        form: what its shapes are; found from its shardings when not given.
        lowering_type: what the lowering of its computations shares.
        scope_type: lowers one computation.
        attributes: further attributes of the program.

    Raises:
        HloSyntaxError: groups name more ranks than are listed (`hlo.too_many_ranks`).
    """
    module, reachable = analysed.module, analysed.reachable
    table = GroupTable(analysed.count.devices)
    for computation in reachable:
        for instruction in computation.instructions:
            if base_opcode(instruction.opcode) in COLLECTIVES and not _is_permute(instruction):
                with placed(instruction):
                    table.of(instruction)
    computations = module.by_name()
    space = make_rank_space(module, reachable, analysed.count.devices, table.resolved.values())
    form = module_form(module, reachable, analysed.control) if form is None else form
    lowering = lowering_type(
        module.name or module.entry.name,
        module.entry.name,
        computations,
        _wrapped(reachable),
        analysed.control,
        space,
        Layouts(space, form),
        CollectiveMaker(space, table, computations),
        Facts(module.tables),
    )
    regions = tuple(
        _region(lowering, computation, scope_type)
        for computation in reachable
        if computation.name != module.entry.name and computation.name not in lowering.wrapped
    )
    main = scope_type(lowering, module.entry)
    main.run()
    tasks = main.tasks or [_return(lowering, main)]
    outputs = tuple(dict.fromkeys(main.outputs))
    return DistributedTaskIR(
        name,
        digest,
        space.mesh,
        tuple(main.values),
        tuple(tasks),
        main.inputs,
        outputs,
        attributes=FrozenDict({**_attributes(analysed, form, main.outputs, outputs), **(attributes or {})}),
        header=make_header(NATIVE_SCHEMA, NATIVE_VERSION, parent_digests=(digest,), producer_version=__version__),
        regions=regions,
    )


def _is_permute(instruction: Instruction) -> bool:
    return base_opcode(instruction.opcode) == "collective-permute"


def _wrapped(reachable: tuple[Computation, ...]) -> dict[str, Instruction]:
    """Collectives that stand alone in the computation of an `async-start`, by the computation's name.

    Such a computation becomes no region: the collective is the task, started there and completed by the done.
    """
    called = {
        (i.names("calls") or i.names("called_computations"))[0]
        for computation in reachable
        for i in computation.instructions
        if i.opcode == "async-start"
    }
    found: dict[str, Instruction] = {}
    for computation in reachable:
        root = computation.root
        if computation.name in called and root.opcode in COLLECTIVES:
            parameters = {i.name for i in computation.instructions if i.opcode == "parameter"}
            if len(parameters) == len(computation.instructions) - 1 and set(root.operands) == parameters:
                found[computation.name] = root
    return found


def _region(lowering: Lowering, computation: Computation, scope_type: type[ScopeLowering]) -> Region:
    scope = scope_type(lowering, computation)
    scope.run()
    attributes: dict[str, Any] = {}
    if computation.execution_thread is not None:
        attributes[fact("execution_thread")] = computation.execution_thread
    return Region(
        lowering.region_id(computation.name),
        computation.name,
        tuple(scope.values),
        tuple(scope.tasks),
        scope.inputs,
        scope.outputs,
        FrozenDict(attributes),
    )


def _return(lowering: Lowering, main: ScopeLowering) -> DistributedTask:
    """A program that only hands its inputs on still needs one task: a control task that reads what it returns."""
    return DistributedTask(
        NodeId.derive("hlo", lowering.module_name, lowering.entry_name, "#return"),
        Control(),
        OperationName("hlo", "return"),
        lowering.space.ranks,
        tuple(dict.fromkeys(main.outputs)),
        (),
        (),
        lowering.lineage,
        name="return",
    )


def _attributes(
    analysed: AnalysedModule, form: Form, leaves: tuple[ValueId, ...], outputs: tuple[ValueId, ...]
) -> FrozenDict[Any]:
    module, reachable = analysed.module, analysed.reachable
    opcodes = Counter(i.opcode for computation in reachable for i in computation.instructions)
    attributes: dict[str, Any] = {
        fact("module"): module.name or "",
        fact("entry"): module.entry.name,
        fact("form"): form.value,
        fact("is_scheduled"): module.is_scheduled,
        fact("replicas"): analysed.count.devices.replicas,
        fact("partitions"): analysed.count.devices.partitions,
        fact("structural"): FrozenDict({opcode: opcodes[opcode] for opcode in _STRUCTURAL}),
        fact("result"): module.entry.root.shape.text(),
    }
    if leaves != outputs:
        position = {leaf: number for number, leaf in enumerate(outputs)}
        attributes[fact("outputs")] = tuple(position[leaf] for leaf in leaves)
    sharding = module.entry.root.attributes.get("sharding")
    if isinstance(sharding, (Uniform, Maximal, Tiled, Named, TupleSharding)):
        parts = leaf_shardings(sharding, len(leaves))
        attributes[fact("output_shardings")] = tuple("" if part is None else part.text for part in parts)
    known = {computation.name for computation in reachable}
    unreachable = tuple(c.name for c in module.computations if c.name not in known)
    if unreachable:
        attributes[fact("unreachable")] = unreachable
    for key, value in module.attributes.items():
        if key not in ("is_scheduled", "replica_count", "num_partitions"):
            attributes.setdefault(fact(key), plain(value))
    return FrozenDict(attributes)
