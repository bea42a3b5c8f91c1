"""Regions as a whole: which task enters which, that none enters itself, and the per-rank issue lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

from dtir.ir.findings import verify_known_references
from dtir.ir.ids import RegionId
from dtir.ir.ranks import rank_text
from dtir.ir.tasks import Branch, Call, Collective, Control, DistributedTask, LocalCompute, Loop, PointToPoint, Reshard
from dtir.schema.diagnostics import DiagnosticBag

if TYPE_CHECKING:
    from dtir.ir.program import DistributedTaskIR


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


def verify_region_order(program: DistributedTaskIR, bag: DiagnosticBag) -> None:
    """Report regions that enter themselves, directly or through others (depth first, own stack)."""
    regions = {region.id: region for region in program.regions}
    entered = {
        region.id: [target for target in entered_regions(region.tasks) if target in regions]
        for region in program.regions
    }
    running: dict[RegionId, bool] = {}
    for start in entered:
        stack: list[tuple[RegionId, int]] = [(start, 0)] if start not in running else []
        while stack:
            region, position = stack.pop()
            running[region] = position < len(entered[region])
            if not running[region]:
                continue
            stack.append((region, position + 1))
            target = entered[region][position]
            if running.get(target):
                bag.error(
                    "region.cycle",
                    f"region {regions[region].name!r} enters {regions[target].name!r}, which is already running",
                    "regions",
                    hint="recursion is not part of the IR: use a Loop",
                    subject=(str(region), str(target)),
                )
            elif target not in running:
                stack.append((target, 0))


def verify_issue(program: DistributedTaskIR, bag: DiagnosticBag) -> None:
    """Report issue lists of ranks outside the mesh, and steps that name unknown tasks."""
    if not program.issue:
        return
    mesh_size = program.mesh.size
    known = {task.id for task in program.all_tasks()}
    for index, issue in enumerate(program.issue):
        path = ("issue", str(index))
        if issue.rank >= mesh_size:
            bag.error(
                "rank.unknown",
                f"issue rank {rank_text(issue.rank)} is outside the logical mesh",
                *path,
                "rank",
                hint=f"the mesh has ranks 0 to {rank_text(mesh_size - 1)}",
            )
        for position, step in enumerate(issue.steps):
            verify_known_references(bag, step, known, *path, "steps", str(position))
