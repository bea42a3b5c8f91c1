"""One program of a part: the function it starts with, and everything that this one uses, as an analysed HLO module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from dtir.importers.hlo.attributes import AttributeValue, Frontend
from dtir.importers.hlo.control import analyse
from dtir.importers.hlo.devices import DeviceCount, count_devices
from dtir.importers.hlo.frontend import AnalysedModule
from dtir.importers.hlo.layouts import Form
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.syntax import Computation, HloModule, SourceTables
from dtir.importers.hlo.validate import validate_collectives
from dtir.importers.stablehlo.facts import said
from dtir.importers.stablehlo.functions import Function
from dtir.importers.stablehlo.mpmd import AXIS
from dtir.importers.stablehlo.sdy import SdyMesh
from dtir.importers.stablehlo.translate import Translator, topology_of
from dtir.importers.stablehlo.values import integer

MOST_RANKS = 2**40
"""Ranks are numbers, and none of them is listed for being there; beyond this they are no machine's."""
_BOUNDARIES = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})


def assemble(translator: Translator, function: Function, problems: Problems) -> AnalysedModule | None:
    """The module of a translated function; None when it has faults, which are then among the problems."""
    entry = translator.computations[function.name]
    computations = _used(translator.computations, entry)
    module_name = (function.module.get("sym_name") or "module").strip('"')
    meshes = _meshes(translator, function)
    topology = topology_of(function, translator.shared.part.aliases)
    if topology is not None and any(mesh.mesh.count != topology.mesh.mesh.count for mesh in meshes.values()):
        topology = None  # its shardings are of other meshes than those of the topology
    if topology is not None and not meshes:
        meshes = {"mesh": topology.mesh}
    attributes: dict[str, AttributeValue] = {}
    if meshes:
        attributes["frontend_attributes"] = Frontend((("xla.sdy.meshes", _text(meshes)),))
    needed = max((mesh.mesh.count for mesh in meshes.values()), default=1)
    for key, name in (("mhlo.num_partitions", "num_partitions"), ("mhlo.num_replicas", "replica_count")):
        count = integer(function.module.get(key))
        # One partition is what a producer writes that does not know the number yet.
        if (
            count is not None
            and count > (1 if key == "mhlo.num_partitions" else 0)
            and count >= (needed if name == "num_partitions" else 1)
        ):
            attributes[name] = count
    if topology is not None:
        attributes["num_partitions"], attributes["replica_count"] = topology.mesh.mesh.count, len(topology.names)
    elif "num_partitions" not in attributes and (cluster := translator.cluster()) is not None:
        attributes["num_partitions"] = prod(cluster)
    module = HloModule(module_name, attributes, computations, entry, SourceTables(), function.operation.offset)
    control = analyse(module)
    if control.cycle:
        message = f"functions call each other in a circle: {' -> '.join(control.cycle)}"
        problems.error("mlir.recursion", message, function.operation.offset, "a program ends: unroll or rewrite it")
        return None
    by_name = module.by_name()
    reachable = tuple(by_name[name] for name in control.order)
    count = count_devices(module, reachable)
    if topology is not None:
        count = replace(count, devices=replace(count.devices, outer=AXIS))
    before = problems.errors
    if count.devices.ranks > MOST_RANKS:
        message = f"{count.devices.ranks} ranks are more than the {MOST_RANKS} that a program can have"
        problems.error("hlo.too_many_ranks", message, count.offset, "state a number of devices that exists")
        return None
    validate_collectives(module, reachable, DeviceCount(count.devices, count.inferred, count.offset), problems)
    if problems.errors > before:
        return None
    # What other functions use is no part of this program.
    mine = HloModule(module_name, attributes, reachable, entry, module.tables, module.offset)
    return AnalysedModule(mine, control, count, reachable)


def _used(known: Mapping[str, Computation], entry: Computation) -> tuple[Computation, ...]:
    """The entry and every computation that it uses, directly or not: a part may hold thousands of programs."""
    found = {entry.name: entry}
    waiting = [entry]
    while waiting:
        for instruction in waiting.pop().instructions:
            for _, name in instruction.called() if instruction.attributes else ():
                if name in known and name not in found:
                    found[name] = known[name]
                    waiting.append(known[name])
    return tuple(found.values())


def form_of(analysed: AnalysedModule) -> Form:
    """Whether shapes are of whole values: they are wherever a sharding or a boundary of manual parts stands."""
    if "frontend_attributes" in analysed.module.attributes:
        return Form.GLOBAL
    for computation in analysed.reachable:
        for instruction in computation.instructions:
            if "sharding" in instruction.attributes or instruction.text("custom_call_target") in _BOUNDARIES:
                return Form.GLOBAL
    return Form.PER_DEVICE


def _meshes(translator: Translator, function: Function) -> dict[str, SdyMesh]:
    """The meshes with axes that a program uses, the most used first; all of them where none is used."""
    seen: dict[str, int] = {}
    waiting, done = [function.name], set[str]()
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.add(name)
        for mesh, times in translator.shardings.used.get(name, {}).items():
            seen[mesh] = seen.get(mesh, 0) + times
        if name in translator.functions:
            waiting += translator.functions[name].calls
    order = {name: place for place, name in enumerate(translator.meshes)}
    names = sorted(seen, key=lambda name: (-seen[name], order[name])) or list(translator.meshes)
    return {name: translator.meshes[name] for name in names if translator.meshes[name].axes}


def _text(meshes: Mapping[str, SdyMesh]) -> str:
    """As XLA prints the meshes of a module."""
    return "{" + ", ".join(f"{name} = #sdy.mesh<{mesh.text()}>" for name, mesh in meshes.items()) + "}"


def facts(function: Function, operations: Mapping[str, int], meshes: Mapping[str, SdyMesh]) -> dict[str, Any]:
    """Attributes of a program: what its text says beyond tasks and values."""
    found: dict[str, Any] = {
        said("operations"): tuple(sorted(operations.items())),
        said("function"): function.name,
    }
    if meshes:
        found[said("meshes")] = tuple((name, mesh.text()) for name, mesh in meshes.items())
    for key, values in ((said("arguments"), function.arguments), (said("results"), function.results)):
        stated = tuple(tuple(sorted(one.attributes.items())) for one in values)
        if any(stated):
            found[key] = stated
    if function.attributes:
        found[said("attributes")] = tuple(sorted(function.attributes.items()))
    module = {name: text for name, text in function.module.items() if name != "sym_name"}
    if module:
        found[said("module")] = tuple(sorted(module.items()))
    return found
