"""Where the root of a broadcast goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from dtir.analysis.flow import Flow
from dtir.analysis.groups import groups_of
from dtir.ir.collectives import Broadcast
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import Collective, DistributedTask
from dtir.verify.context import Context, listed, value_name

MOST_GROUPS = 100_000
"""Groups whose roots are looked at."""


@dataclass(frozen=True, slots=True)
class RootFault:
    """One fault of one broadcast."""

    index: int
    code: str
    message: str
    hint: str


def root_faults(context: Context, flow: Flow) -> Iterator[RootFault]:
    """The first fault of every broadcast's roots: membership before ownership before age."""
    for index, task in enumerate(flow.scope.tasks):
        if isinstance(task.body, Collective) and isinstance(task.body.spec, Broadcast):
            groups = groups_of(task.body.spec, context.program.mesh) or ()
            fault = _outside(index, task, task.body.spec, groups) or _holders(flow, index, task, task.body.spec, groups)
            if fault is not None:
                yield fault


def _outside(index: int, task: DistributedTask, spec: Broadcast, groups: Sequence[Sequence[int]]) -> RootFault | None:
    hint = "store one root a group, as ranks, and convert positions at one place"
    stated = task.attributes.get("op.root", -1)
    if "op.root" in task.attributes and not isinstance(stated, int):
        return RootFault(
            index,
            "collective.root",
            "no root is given",
            "name the root: its position in the group, or root_space: global",
        )
    if isinstance(stated, int) and stated >= 0:
        if task.attributes.get("op.root_space") == "global":
            roots: Sequence[int] = [stated] * min(len(groups), MOST_GROUPS)
        else:
            for group in islice(groups, MOST_GROUPS):
                if stated >= len(group):
                    message = (
                        f"root {stated} is a position, and group {{{listed(list(group), 6)}}} has {len(group)} members"
                    )
                    return RootFault(index, "collective.root", message, hint)
            return None
    else:
        roots = spec.roots or [spec.root]
        if len(roots) != len(groups) and (spec.roots or len(groups) > 1):
            message = (
                f"{len(roots)} root for {len(groups)} groups"
                if len(roots) == 1
                else f"{len(roots)} roots for {len(groups)} groups"
            )
            return RootFault(index, "collective.root", message, hint)
    for root, group in zip(roots, islice(groups, MOST_GROUPS), strict=False):
        if root not in group:
            message = f"root {root} is not in group {{{listed(list(group), 6)}}}"
            return RootFault(index, "collective.root", message, hint)
    return None


def roots_of(spec: Broadcast) -> Sequence[int]:
    """The roots, one a group."""
    return spec.roots or (spec.root,)


def _holders(
    flow: Flow, index: int, task: DistributedTask, spec: Broadcast, groups: Sequence[Sequence[int]]
) -> RootFault | None:
    if len(task.inputs) != 1:
        return None
    value = flow.scope.values[flow.position[task.inputs[0]]]
    owners, roots = rank_set(value.owners), roots_of(spec)
    absent = [root for root in roots if root not in owners]
    if absent:
        message = f"root {absent[0]} does not hold {value_name(value)}, which ranks {listed(value.owners, 6)} hold"
        return RootFault(index, "ownership.absent", message, f"broadcast from one of {listed(value.owners, 6)}")
    if value.valid_on is None:
        return None
    current = set(value.valid_on)
    for root, group in zip(roots, islice(groups, MOST_GROUPS), strict=False):
        if root not in current:
            fresh = [rank for rank in group if rank in current]
            message = (
                f"root {root} has an old copy of {value_name(value)}: the current one is on {listed(value.valid_on, 6)}"
            )
            where = f"rank {fresh[0]}" if fresh else "a rank that wrote last"
            return RootFault(
                index, "collective.stale_root", message, f"broadcast from {where}, which has the current copy"
            )
    return None
