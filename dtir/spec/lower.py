"""From a declaration to a program: exchanges, stages, reductions, each with the entry of the spec that asked for it.

Fields of atoms are fields of bins (`dtir.spec.system`), split over the grid of domains, uneven where the bins do not divide. A rank's
ghosts are the layers of bins around its block. An exchange is a task that fills them from the owners; it is done by transfers
between neighbours, one channel a column (``halo.x``), whose pairs and sizes `dtir.spec.routes` lists.

| entry of the spec | what it becomes |
|---|---|
| ``core.policy`` halo, `gather_mode` ``halo_read`` | an exchange of every column that a stage reads around its atoms |
| ``core.policy`` halo, `scatter_mode` ``halo_correction`` | an exchange of every column that neighbours contributed to |
| ``core.policy`` refresh_halo | an exchange of every column before it is read around atoms |
| ``core.policy`` graph_parallel | an all_gather of every column before it is read around atoms; own rows are kept |
| ``core.policy`` local | everything on every rank |
| ``core.custom_ops.N.arg_transforms.P`` | the exchange or all_gather of that operand, whatever the policy says |
| ``core.custom_ops.N.output_transforms.P`` | the exchange or all_reduce of that result |
| ``core.shard_fields`` | which fields are split; the others are on every rank and cut to the rank's block where they are used |
| `output_kinds`, `system_reductions`, `all_reduce_outputs` | sums over owned rows, and an all_reduce over the ranks |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtir.ir.builder import ProgramBuilder
from dtir.ir.collectives import AllGather, AllReduce
from dtir.ir.ids import Lineage, NodeId, ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import Partial, ShardingSpec
from dtir.ir.tasks import Collective, Reshard, ReshardKind
from dtir.ir.types import OperationName
from dtir.ir.values import ValueRole
from dtir.spec.distribution import DistributionSpec
from dtir.spec.domains import Domains
from dtir.spec.errors import SpecError
from dtir.spec.fitting import check_adapters, check_outputs, declared
from dtir.spec.model import MLIPSpec, OutputKind
from dtir.spec.op_adapter import OpAdapter
from dtir.spec.outline import FIELDS, ModelOutline, Stage
from dtir.spec.partition import Partition
from dtir.spec.policies import GraphParallelPolicy, HaloPolicy, LocalPolicy, RefreshHaloPolicy
from dtir.spec.transforms import ArgTransform, OutputTransform

DTYPE = "f64"
ITEM_BYTES = 8


def lower(spec: MLIPSpec | DistributionSpec, partition: Partition, outline: ModelOutline) -> DistributedTaskIR:
    """The program that a spec, a partition and a model make together.

    Inputs are the model's columns as fields of bins, outputs those of `outline.outputs` in order, column by column.

    Raises:
        SpecError: naming the field: a policy that cannot be lowered, or an output or position that the model does not have.
    """
    return _Lowering(spec if isinstance(spec, MLIPSpec) else MLIPSpec(spec), partition, outline).program()


@dataclass
class _Column:
    """Where a column stands: its value with own rows, and with ghosts or whole where that is up to date."""

    own: ValueId
    version: int = 0
    seen: ValueId | None = None
    seen_version: int = -1
    scattered: bool = False
    replicated: bool = False


class _Lowering:
    def __init__(self, spec: MLIPSpec, partition: Partition, outline: ModelOutline) -> None:
        self.spec, self.partition, self.outline = spec, partition, outline
        self.policy = spec.distribution.storage
        if not isinstance(self.policy, HaloPolicy | GraphParallelPolicy | LocalPolicy):
            raise SpecError(
                "core.policy",
                f"policy {self.policy.kind} is storage alone: no stage could read another rank's rows",
                "spec.lower",
            )
        if isinstance(self.policy, HaloPolicy) and not partition.sizes:
            raise SpecError("core.policy", f"policy {self.policy.kind} needs a spatial partition", "spec.lower")
        check_outputs(spec, outline)
        self.adapters: dict[str, tuple[int, OpAdapter]] = {}
        for number, adapter in enumerate(spec.distribution.custom_ops):
            self.adapters.setdefault(adapter.target, (number, adapter))
        check_adapters(self.adapters, outline)
        self.domains = Domains(partition, isinstance(self.policy, LocalPolicy))
        self.shape, self.mesh = self.domains.shape, self.domains.mesh
        self.axis_of, self.everyone = self.domains.axis_of, self.domains.everyone
        self.build = ProgramBuilder(
            f"{outline.name} of {partition.system.name} on {self.mesh.size} ranks",
            mesh=self.mesh,
            attributes=declared(spec.distribution, partition, outline),
        )
        self.columns: dict[str, _Column] = {}
        self._names: dict[str, int] = {}

    def _name(self, base: str) -> str:
        """A name of its own for every version of a column."""
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        return base if count == 0 else f"{base}.{count}"

    def _noted(self, entry: str, **more: Any) -> dict[str, Any]:
        return {
            "lineage": Lineage.lowered("spec.lower", (NodeId.derive("spec", entry),)),
            "attributes": {"lowered.entry": entry, **more},
        }

    # -- the program -----------------------------------------------------------------------------------------------------

    def program(self) -> DistributedTaskIR:
        for column in self.outline.inputs:
            self._input(column)
        for stage in self.outline.stages:
            self._stage(stage)
        for name, columns in self.outline.outputs.items():
            self._output(name, columns)
        return self.build.build(require_valid=True)

    def _input(self, column: str) -> None:
        owner = next((name for name, columns in FIELDS.items() if column in columns), column)
        split = owner in self.spec.distribution.shard_fields and not isinstance(self.policy, LocalPolicy)
        layout = self.domains.split() if split else self.domains.replicated(len(self.shape))
        entry = "core.shard_fields" if split or not isinstance(self.policy, LocalPolicy) else "core.policy"
        value = self.build.input(
            self._name(column), self.shape, DTYPE, sharding=layout, attributes={"lowered.entry": entry}
        )
        self.columns[column] = _Column(value, replicated=not split)

    def _stage(self, stage: Stage) -> None:
        number, adapter = self.adapters.get(stage.op, (-1, None))
        arguments: Mapping[int, ArgTransform] = adapter.arg_transforms if adapter is not None else {}
        results: Mapping[int, OutputTransform] = adapter.output_transforms if adapter is not None else {}
        gathered = isinstance(self.policy, GraphParallelPolicy) or ArgTransform.GATHER_INPUTS_FULL in arguments.values()
        operands: list[ValueId] = []
        for at, column in enumerate(stage.reads):
            entry = f"core.custom_ops.{number}.arg_transforms.{at}"
            if gathered:
                own = entry if at in arguments else "core.policy"
                operands.append(self._whole(column, own))
            elif at in arguments:
                operands.append(self._transformed(column, arguments[at], entry))
            elif column in stage.around:
                operands.append(self._around(column))
            else:
                operands.append(self._own(column))
        made: list[ValueId] = []
        names = [self._name(column) for column in stage.makes]
        layout = self.domains.replicated(len(self.shape)) if gathered else self.domains.split()
        for name in names:
            made.append(self.build.value(f"{name}.all" if gathered else name, self.shape, DTYPE, sharding=layout))
        entry = f"core.custom_ops.{number}" if adapter is not None else "model"
        noted = self._noted(entry, **self._parameters(stage))
        namespace, _, operation = stage.op.partition("::")
        self.build.task(OperationName(namespace, operation), operands, made, name=stage.name, **noted)
        for at, (column, name, value) in enumerate(zip(stage.makes, names, made, strict=True)):
            own = self._kept(name, value) if gathered and not isinstance(self.policy, LocalPolicy) else value
            self.columns[column] = _Column(own, scattered=column in stage.scatters)
            if at in results:
                self._corrected(column, results[at], f"core.custom_ops.{number}.output_transforms.{at}")

    def _parameters(self, stage: Stage) -> dict[str, Any]:
        system = self.partition.system
        widths = [length / bins for length, bins in zip(system.cell, system.bins, strict=True)]
        cutoff = stage.parameters.get("cutoff", system.cutoff)
        radius = [math.ceil(cutoff / width - 1e-9) for width in widths]
        return {
            "op.radius": radius,
            "op.cell": list(system.cell),
            **{f"op.{name}": number for name, number in stage.parameters.items()},
        }

    # -- reading ---------------------------------------------------------------------------------------------------------

    def _own(self, column: str) -> ValueId:
        """The rank's own rows; a replicated column is cut to its block."""
        found = self.columns[column]
        if not found.replicated or isinstance(self.policy, LocalPolicy):
            return found.own
        value = found.own
        for axis, name in self.axis_of.items():
            value = self._sharded(column, value, axis, name, "core.shard_fields")
        found.own, found.replicated = value, False
        return value

    def _sharded(self, column: str, value: ValueId, axis: int, name: str, entry: str) -> ValueId:
        before = next(item for item in self.build.values if item.id == value).sharding
        dims = tuple((name,) if dim == axis else axes for dim, axes in enumerate(before.dimension_axes))
        whole = self.domains.split()
        sizes = tuple(item for item in whole.sizes if dims[item.dim])
        rest = tuple(one for one in before.replicated_axes if one != name)
        made = self.build.value(
            self._name(f"{column}.block"), self.shape, DTYPE, sharding=ShardingSpec(dims, rest, sizes=sizes)
        )
        task = self._name(f"cut {column}")
        if any(item.dim == axis for item in sizes):
            self.build.task("core.reshard", [value], [made], body=Reshard(), name=task, **self._noted(entry))
        else:
            noted = self._noted(entry, **{"op.axis": name, "op.dim": axis})
            self.build.task("core.shard", [value], [made], name=task, **noted)
        return made

    def _around(self, column: str) -> ValueId:
        """A column as a stage reads it around its atoms."""
        found = self.columns[column]
        own = self._own(column)
        policy = self.policy
        if not isinstance(policy, HaloPolicy) or not any(self.partition.ghost_bins[axis] for axis in self.axis_of):
            return own
        if isinstance(policy, RefreshHaloPolicy):
            wanted, entry = policy.gather_mode == "halo_read", "core.policy.gather_mode"
        elif found.scattered:
            wanted, entry = policy.scatter_mode == "halo_correction", "core.policy.scatter_mode"
        else:
            wanted, entry = policy.gather_mode == "halo_read", "core.policy.gather_mode"
        return self._exchanged(column, entry) if wanted else own

    def _transformed(self, column: str, transform: ArgTransform, entry: str) -> ValueId:
        if transform is ArgTransform.GATHER_INPUTS:
            return self._exchanged(column, entry)
        return self._own(column)  # slice_owned; gather_inputs_full is the whole stage's

    def _exchanged(self, column: str, entry: str) -> ValueId:
        """Own rows and ghosts, brought up to date once for every version."""
        found = self.columns[column]
        own = self._own(column)
        if found.seen is not None and found.seen_version == found.version:
            return found.seen
        layout = self.domains.split(halo=True)
        if layout.halo is None:
            return own
        made = self.build.value(self._name(f"{column}.halo"), self.shape, DTYPE, sharding=layout)
        noted = self._noted(entry, **{"lowered.channel": f"halo.{column}"})
        self.build.task(
            "core.reshard",
            [own],
            [made],
            body=Reshard(ReshardKind.HALO),
            name=self._name(f"exchange {column}"),
            **noted,
        )
        found.seen, found.seen_version = made, found.version
        return made

    def _whole(self, column: str, entry: str) -> ValueId:
        """All rows on every rank, axis by axis."""
        found = self.columns[column]
        if found.replicated:
            return found.own
        if found.seen is not None and found.seen_version == found.version:
            return found.seen
        value = found.own
        sharding = self.domains.split()
        for axis, name in reversed(list(self.axis_of.items())):
            dims = tuple(() if dim == axis else axes for dim, axes in enumerate(sharding.dimension_axes))
            sharding = ShardingSpec(
                dims,
                (*sharding.replicated_axes, name),
                sizes=tuple(item for item in sharding.sizes if item.dim != axis),
            )
            made = self.build.value(self._name(f"{column}.full"), self.shape, DTYPE, sharding=sharding)
            body = self._gather(axis, name, sharding)
            operation = "core.all_gather" if isinstance(body, Collective) else "core.reshard"
            task = self._name(f"gather {column}")
            self.build.task(operation, [value], [made], body=body, name=task, **self._noted(entry))
            value = made
        found.seen, found.seen_version = value, found.version
        return value

    def _gather(self, axis: int, name: str, result: ShardingSpec) -> Collective | Reshard:
        """An all_gather where shards are even, else a reshard: collectives are over equal blocks."""
        if any(item.dim == axis for item in self.domains.split().sizes):
            return Reshard()
        return Collective(AllGather(self.everyone, self.domains.largest(result) * ITEM_BYTES, axes=(name,), dim=axis))

    def _kept(self, name: str, value: ValueId) -> ValueId:
        """Own rows of what was computed for all."""
        for axis, mesh_axis in self.axis_of.items():
            value = self._sharded(name, value, axis, mesh_axis, "core.policy")
        return value

    # -- writing ---------------------------------------------------------------------------------------------------------

    def _corrected(self, column: str, transform: OutputTransform, entry: str) -> None:
        found = self.columns[column]
        if transform is OutputTransform.SCATTER_OUTPUTS:
            self._exchanged(column, entry)
        elif transform is OutputTransform.ALL_REDUCE_SUM:
            raise SpecError(
                entry,
                f"{column} is a column of atoms: its rows belong to ranks, and their sum over ranks means nothing",
                "spec.lower",
            )
        else:
            found.scattered = False  # own rows are all that is kept

    def _output(self, name: str, columns: Sequence[str]) -> None:
        for column in columns:
            own = self._own(column)
            if self.outline.kinds[name] is OutputKind.PER_NODE:
                self.build.output(own)
            else:
                self.build.output(self._summed(name, column, own))

    def _summed(self, name: str, column: str, own: ValueId) -> ValueId:
        """The sum over all atoms: over own rows, over ranks, and divided by the volume where the output asks for it."""
        base = column if len(self.outline.outputs[name]) > 1 else name
        axes = tuple(self.axis_of.values())
        local = isinstance(self.policy, LocalPolicy) or self.mesh.size == 1
        reduced = not local and (self.spec.system_reductions or name in self.spec.all_reduce_outputs)
        # Without a reduction the sum over own rows is what the model hands out as the sum over all.
        layout = (
            ShardingSpec((), (), partial=Partial(axes, ReductionKind.SUM)) if reduced else self.domains.replicated(0)
        )
        entry = f"output_kinds.{name}"
        total = self.build.value(self._name(f"{base}.share"), (), DTYPE, sharding=layout)
        noted = self._noted(entry, **{"op.dims": [0, 1, 2, 3]})
        self.build.task("core.sum", [own], [total], name=self._name(f"add {base}"), **noted)
        if reduced:
            reason = "all_reduce_outputs" if name in self.spec.all_reduce_outputs else "system_reductions"
            made = self.build.value(self._name(f"{base}.sum"), (), DTYPE, sharding=self.domains.replicated(0))
            body = Collective(AllReduce(self.everyone, ITEM_BYTES, ReductionKind.SUM, axes=axes))
            self.build.task(
                "core.all_reduce", [total], [made], body=body, name=self._name(f"reduce {base}"), **self._noted(reason)
            )
            total = made
        if name not in self.outline.per_volume:
            return total
        known = next(item for item in self.build.values if item.id == total).sharding
        made = self.build.value(self._name(f"{name}.{base}"), (), DTYPE, sharding=known, role=ValueRole.OUTPUT)
        factor = 1.0 / self.partition.system.volume
        self.build.task(
            "core.scale",
            [total],
            [made],
            name=self._name(f"per volume {base}"),
            **self._noted(entry, **{"op.c": factor}),
        )
        return made
