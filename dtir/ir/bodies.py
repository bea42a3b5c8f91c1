"""The checks of task bodies: collectives, transfers, and how a task enters regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

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
from dtir.ir.findings import verify_nonnegative_scalar
from dtir.ir.ids import RegionId
from dtir.ir.ranks import RankRange, groups_partition, rank_set, rank_text, same_ranks
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
from dtir.schema.diagnostics import DiagnosticBag

if TYPE_CHECKING:
    from dtir.ir.program import DistributedTaskIR

Path = tuple[str, ...]


class BodyVerifier:
    """Judges task bodies of one program; what it finds right about a shared body it does not look at again."""

    def __init__(self, program: DistributedTaskIR, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._axis_names = program.mesh.axis_names
        self._regions = {region.id: region for region in program.regions}
        # Pairs of (body, ranks) by identity; the program keeps both alive.
        self._good: set[tuple[int, int]] = set()

    def verify(self, task: DistributedTask, path: Path) -> None:
        """Report what is wrong with the body of the task at `path`."""
        body = task.body
        match body:
            case LocalCompute() | Reshard() | Control():
                pass
            case Collective() | PointToPoint():
                key = (id(body), id(task.ranks))
                if key in self._good:
                    return
                before = len(self._bag)
                self._verify_communication(task, body, path)
                if len(self._bag) == before:
                    self._good.add(key)
            case Call(region=region):
                self._verify_entry(task, region, len(task.operand_values), len(task.outputs), (*path, "body", "region"))
            case Loop(body=repeated, condition=condition):
                count = len(task.operand_values)
                self._verify_entry(task, repeated, count, len(task.outputs), (*path, "body", "body"))
                if condition is not None:
                    self._verify_entry(task, condition, count, 1, (*path, "body", "condition"))
            case Branch():
                self._verify_branch(task, body, path)
            case _:
                assert_never(body)

    def _verify_communication(self, task: DistributedTask, body: Collective | PointToPoint, path: Path) -> None:
        match body:
            case Collective(spec=spec):
                self._verify_collective(task, spec, path)
            case PointToPoint(spec=transfer):
                self._verify_transfer(task, transfer, path)
        subject = (str(task.id),)
        verify_nonnegative_scalar(self._bag, body.spec.message_bytes, *path, "body", "message_bytes", subject=subject)
        if isinstance(body.spec, CollectivePermute):
            self._verify_pairs(task, body.spec, path)
        elif isinstance(body, Collective):
            self._verify_groups(task, body.spec, path)

    def _verify_collective(self, task: DistributedTask, spec: CollectiveSpecVariant, path: Path) -> None:
        if not same_ranks(spec.participants, task.ranks):
            counts = f"{len(spec.participants)} participants, {len(task.ranks)} ranks"
            self._bag.error(
                "collective.participants",
                "collective participants must equal task ranks",
                *path,
                "body",
                hint=f"{counts}: list the union of the groups in both",
                subject=(str(task.id),),
            )

    def _verify_transfer(self, task: DistributedTask, transfer: PeerTransfer, path: Path) -> None:
        ends = f"{rank_text(transfer.source_rank)} -> {rank_text(transfer.destination_rank)}"
        if not same_ranks((transfer.source_rank, transfer.destination_rank), task.ranks):
            self._bag.error(
                "peer.endpoints",
                "peer transfer endpoints must equal task ranks",
                *path,
                "body",
                hint=f"the transfer is {ends}: run the task on these two ranks",
                subject=(str(task.id),),
            )

    def _verify_pairs(self, task: DistributedTask, spec: CollectivePermute, path: Path) -> None:
        members: frozenset[int] | RankRange = rank_set(spec.participants)
        for index, (source, destination) in enumerate(spec.pairs):
            if source not in members or destination not in members:
                self._bag.error(
                    "peer.endpoints",
                    f"pair {rank_text(source)} -> {rank_text(destination)} names a rank that does not take part",
                    *path,
                    "body",
                    "pairs",
                    str(index),
                    hint="both ends of a pair are participants",
                    subject=(str(task.id),),
                )

    def _verify_groups(
        self, task: DistributedTask, spec: AllReduce | ReduceScatter | AllGather | AllToAll | Broadcast, path: Path
    ) -> None:
        for axis in spec.axes:
            if axis not in self._axis_names:
                self._bag.error(
                    "sharding.unknown_axis",
                    f"unknown mesh axis {axis!r}",
                    *path,
                    "body",
                    "axes",
                    hint=f"the mesh has {', '.join(self._axis_names)}",
                    subject=(str(task.id), axis),
                )
        groups: Sequence[Sequence[int]] = spec.groups
        if groups and not groups_partition(groups, spec.participants):
            members = sum(len(group) for group in groups)
            self._bag.error(
                "collective.participants",
                "the groups must name each participant exactly once",
                *path,
                "body",
                "groups",
                hint=f"{members} group members, {len(spec.participants)} participants",
                subject=(str(task.id),),
            )

    # regions

    def _verify_branch(self, task: DistributedTask, body: Branch, path: Path) -> None:
        for index, (region, count) in enumerate(zip(body.regions, body.operand_counts, strict=True)):
            self._verify_entry(task, region, count, len(task.outputs), (*path, "body", "regions", str(index)))
        wanted, found = 1 + sum(body.operand_counts), len(task.operand_values)
        if found != wanted:
            self._bag.error(
                "region.arity",
                f"branch takes 1 selector and {wanted - 1} operands, task has {found}",
                *path,
                "body",
                hint="the first operand selects, the others go to the regions in order",
                subject=(str(task.id),),
            )

    def _verify_entry(
        self, task: DistributedTask, region_id: RegionId, operands: int, results: int, path: Path
    ) -> None:
        region = self._regions.get(region_id)
        subject = (str(task.id), str(region_id))
        if region is None:
            self._bag.error(
                "region.unknown",
                f"{region_id} is not held by the program",
                *path,
                hint="add the region to the program's regions",
                subject=subject,
            )
            return
        if len(region.inputs) != operands or len(region.outputs) != results:
            self._bag.error(
                "region.arity",
                f"region {region.name!r} takes {len(region.inputs)} and yields {len(region.outputs)}, "
                f"entered with {operands} for {results}",
                *path,
                hint="operands match the region's inputs, results its outputs, one to one",
                subject=subject,
            )
