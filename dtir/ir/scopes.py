"""The checks of one scope (the program or a region): its interface, values and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtir.ir.bodies import BodyVerifier
from dtir.ir.findings import RESERVED_ATTRIBUTES, reject_reserved_attributes, verify_known_references
from dtir.ir.ids import ValueId
from dtir.ir.ranks import RankRange, has_repeats, highest_rank, rank_text
from dtir.ir.tasks import DistributedTask, Region
from dtir.ir.types import is_known_target_dialect
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import DiagnosticBag

if TYPE_CHECKING:
    from dtir.ir.program import DistributedTaskIR, Scope

Path = tuple[str, ...]


class ScopeVerifier:
    """Judges scopes of one program; remembers what it has judged of shared rank sets and layouts.

    Shared objects are known by identity: the program keeps them alive during the run.
    """

    def __init__(self, program: DistributedTaskIR, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._mesh = program.mesh
        self._axis_names = frozenset(program.mesh.axis_names)
        self._mesh_size = program.mesh.size
        self._bodies = BodyVerifier(program, bag)
        self._good_ranks: set[int] = set()
        self._good_shardings: set[int] = set()

    def verify(self, scope: Scope, prefix: Path) -> None:
        """Report everything that is wrong in a scope that lies at `prefix`."""
        bag = self._bag
        value_ids = {value.id for value in scope.values}
        verify_known_references(bag, scope.inputs, value_ids, *prefix, "inputs")
        verify_known_references(bag, scope.outputs, value_ids, *prefix, "outputs")
        if len(set(scope.inputs)) != len(scope.inputs):
            bag.error(
                "distributed.duplicate_input",
                "distributed inputs must be unique",
                *prefix,
                "inputs",
                hint="list every input once",
                subject=_repeated(scope.inputs),
            )
        # A region may yield a value twice, or pass an input through.
        if not isinstance(scope, Region) and len(set(scope.outputs)) != len(scope.outputs):
            bag.error(
                "distributed.duplicate_output",
                "distributed outputs must be unique",
                *prefix,
                "outputs",
                hint="list every output once",
                subject=_repeated(scope.outputs),
            )
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

    # values

    def _verify_value(self, value: DistributedValue, path: Path) -> None:
        dims, shape = value.sharding.dimension_axes, value.type.shape
        if len(dims) != len(shape):
            self._bag.error(
                "sharding.rank",
                "sharding dimension count must equal tensor rank",
                *path,
                "sharding",
                "dimension_axes",
                hint=f"{len(dims)} axis lists for {len(shape)} dims: give one (possibly empty) list per dim",
                subject=(str(value.id),),
            )
        if id(value.sharding) not in self._good_shardings:
            self._verify_axes(value, path)
        self._verify_ranks(value.owners, (*path, "owners"), str(value.id), owners=True)
        if value.attributes or value.type.attributes:
            reject_reserved_attributes(self._bag, value.attributes, RESERVED_ATTRIBUTES, *path, "attributes")
            path = (*path, "type", "attributes")
            reject_reserved_attributes(self._bag, value.type.attributes, RESERVED_ATTRIBUTES, *path)

    def _verify_axes(self, value: DistributedValue, path: Path) -> None:
        used = value.sharding.named_axes
        unknown = [axis for axis in used if axis not in self._axis_names]
        repeated = len(set(used)) != len(used)
        if repeated:
            self._bag.error(
                "sharding.axis_reuse",
                "a mesh axis may appear only once",
                *path,
                "sharding",
                hint="an axis splits one dim or is replicated; split it into sub-axes if two dims need a part",
                subject=(str(value.id), *sorted({axis for axis in used if used.count(axis) > 1})),
            )
        for axis in unknown:
            self._bag.error(
                "sharding.unknown_axis",
                f"unknown mesh axis {axis!r}",
                *path,
                "sharding",
                hint=f"the mesh has {', '.join(self._mesh.axis_names)}",
                subject=(str(value.id), axis),
            )
        if not repeated and not unknown:
            self._good_shardings.add(id(value.sharding))

    # tasks

    def _verify_task(self, task: DistributedTask, value_ids: set[ValueId], defined: set[ValueId], path: Path) -> None:
        bag = self._bag
        self._verify_ranks(task.ranks, (*path, "ranks"), str(task.id), owners=False)
        if is_known_target_dialect(task.operation):
            bag.error(
                "distributed.target_dialect",
                f"target dialect {task.operation.dialect!r} is illegal in DistributedTaskIR",
                *path,
                "operation",
                hint="name the operation, not the library that runs it",
                subject=(str(task.id),),
            )
        if task.inputs:
            self._verify_inputs(task, value_ids, defined, (*path, "inputs"))
        if task.outputs:
            self._verify_outputs(task, value_ids, defined, (*path, "outputs"))
        self._bodies.verify(task, path)
        reject_reserved_attributes(bag, task.attributes, RESERVED_ATTRIBUTES, *path, "attributes")

    def _verify_inputs(self, task: DistributedTask, value_ids: set[ValueId], defined: set[ValueId], path: Path) -> None:
        bag = self._bag
        verify_known_references(bag, task.inputs, value_ids, *path)
        if len(set(task.inputs)) != len(task.inputs):
            bag.error(
                "task.duplicate_input",
                "task inputs must be unique",
                *path,
                hint="name the value once and give its positions in operands",
                subject=(str(task.id), *_repeated(task.inputs)),
            )
        for value in task.inputs:
            if value not in defined and value in value_ids:
                bag.error(
                    "dataflow.use_before_definition",
                    f"value {value} is not yet defined",
                    *path,
                    hint="place the producer before its readers, or list the value as a program input",
                    subject=(str(task.id), str(value)),
                )

    def _verify_outputs(
        self, task: DistributedTask, value_ids: set[ValueId], defined: set[ValueId], path: Path
    ) -> None:
        bag = self._bag
        verify_known_references(bag, task.outputs, value_ids, *path)
        if len(set(task.outputs)) != len(task.outputs):
            bag.error(
                "task.duplicate_output",
                "task outputs must be unique",
                *path,
                hint="list every output once",
                subject=(str(task.id), *_repeated(task.outputs)),
            )
        for value in task.outputs:
            if value in defined:
                bag.error(
                    "dataflow.multiple_definition",
                    f"value {value} has multiple definitions",
                    *path,
                    hint="give each result a value of its own; a program input counts as defined",
                    subject=(str(task.id), str(value)),
                )
            defined.add(value)

    # ranks

    def _verify_ranks(self, ranks: Sequence[int], path: Path, subject: str, *, owners: bool) -> None:
        if id(ranks) in self._good_ranks:
            return
        bag = self._bag
        unusable = not ranks or has_repeats(ranks)
        if unusable and owners:
            bag.error(
                "ownership.invalid",
                "owners must be non-empty and unique",
                *path,
                hint="list each rank that holds a part once",
                subject=(subject,),
            )
        elif unusable:
            bag.error(
                "rank.invalid",
                "task ranks must be non-empty and unique",
                *path,
                hint="list each rank that runs the task once",
                subject=(subject,),
            )
        if not ranks or highest_rank(ranks) < self._mesh_size:
            if not unusable:
                self._good_ranks.add(id(ranks))
            return
        # Of a run only the last rank is named: the run may be long.
        outside = [ranks[-1]] if isinstance(ranks, RankRange) else [rank for rank in ranks if rank >= self._mesh_size]
        for rank in outside:
            bag.error(
                "rank.unknown",
                f"{'owner' if owners else 'task'} rank {rank_text(rank)} is outside the logical mesh",
                *path,
                hint=f"the mesh has ranks 0 to {rank_text(self._mesh_size - 1)}",
                subject=(subject,),
            )


def _repeated(ids: Sequence[ValueId]) -> tuple[str, ...]:
    return tuple(str(item) for item, count in Counter(ids).items() if count > 1)
