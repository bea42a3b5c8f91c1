"""Control flow of a module: who calls whom, how often a loop runs, how often a computation is executed.

A computation is *entered* by `call`, `fusion`, `while`, `conditional` and `async-start`; `to_apply` of other ops is an
element-wise function (a reducer, a comparator) that is *applied* and counts no executions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from dtir.importers.hlo.syntax import Computation, HloModule, Instruction
from dtir.importers.hlo.trips import TripCounter


class Role(Enum):
    """How a computation is used by an instruction."""

    ENTERED = "entered"
    BODY = "body"
    CONDITION = "condition"
    BRANCH = "branch"
    APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class CallSite:
    """One use of a computation."""

    caller: str
    instruction: Instruction
    callee: str
    role: Role


@dataclass(frozen=True, slots=True)
class Control:
    """Facts about the control flow of one module.

    `order` lists the reachable computations, callees before callers. `executions[name]` is how often a computation runs
    in one execution of the module: loops weighted by their trip counts, None where it depends on data, 0 when nothing
    enters it. `cycle` names computations that call each other, empty when there is no such fault.
    """

    order: tuple[str, ...]
    executions: Mapping[str, int | None]
    trip_counts: Mapping[tuple[str, str], int | None]
    applied: frozenset[str]
    cycle: tuple[str, ...]

    def trips(self, computation: str, instruction: str) -> int | None:
        """Trip count of a while loop, None when it depends on data."""
        return self.trip_counts.get((computation, instruction))


_ROLES: dict[str, dict[str, Role]] = {
    "while": {"body": Role.BODY, "condition": Role.CONDITION},
    "conditional": dict.fromkeys(("true_computation", "false_computation", "branch_computations"), Role.BRANCH),
    "call": {"to_apply": Role.ENTERED, "calls": Role.ENTERED},
    "fusion": {"calls": Role.ENTERED},
    "async-start": {"calls": Role.ENTERED, "called_computations": Role.ENTERED},
}


def call_sites(computation: Computation) -> list[CallSite]:
    """Every use of another computation, in order."""
    sites: list[CallSite] = []
    for instruction in computation.instructions:
        if instruction.attributes:
            roles = _ROLES.get(instruction.opcode)
            for key, callee in instruction.called():
                role = roles.get(key, Role.APPLIED) if roles is not None else Role.APPLIED
                sites.append(CallSite(computation.name, instruction, callee, role))
    return sites


def analyse(module: HloModule) -> Control:
    """Control flow facts of a module whose references are all defined."""
    by_name = module.by_name()
    sites = {c.name: [site for site in call_sites(c) if site.callee in by_name] for c in module.computations}
    order, cycle = _callees_first(module.entry.name, sites)
    trips: dict[tuple[str, str], int | None] = {}
    executions: dict[str, int | None] = dict.fromkeys(by_name, 0)
    applied: set[str] = set()
    if cycle:
        return Control(tuple(order), executions, trips, frozenset(), tuple(cycle))
    counter = TripCounter(by_name)
    executions[module.entry.name] = 1
    for name in reversed(order):
        for site in sites[name]:
            if site.role is Role.APPLIED:
                applied.add(site.callee)
                continue
            times = executions[name]
            if site.role in (Role.BODY, Role.CONDITION):
                key = (name, site.instruction.name)
                if key not in trips:
                    trips[key] = counter.count(site.instruction, by_name[name])
                count = trips[key]
                if count is not None and site.role is Role.CONDITION:
                    count += 1
                times = times * count if times is not None and count is not None else _zero_or_unknown(times, count)
            elif site.role is Role.BRANCH:
                times = 0 if times == 0 else None
            executions[site.callee] = _add(executions[site.callee], times)
    return Control(tuple(order), executions, trips, frozenset(applied), ())


def _zero_or_unknown(times: int | None, count: int | None) -> int | None:
    return 0 if times == 0 or count == 0 else None


def _add(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _callees_first(entry: str, sites: Mapping[str, Iterable[CallSite]]) -> tuple[list[str], list[str]]:
    """Reachable computations, callees first, and the computations of one cycle (depth first, own stack)."""
    order: list[str] = []
    open_names: dict[str, None] = {}
    done: set[str] = set()
    stack = [(entry, iter(sites[entry]))]
    open_names[entry] = None
    while stack:
        name, remaining = stack[-1]
        site = next(remaining, None)
        if site is None:
            stack.pop()
            del open_names[name]
            done.add(name)
            order.append(name)
        elif site.callee in open_names:
            path = list(open_names)
            return order, path[path.index(site.callee) :]
        elif site.callee not in done:
            open_names[site.callee] = None
            stack.append((site.callee, iter(sites[site.callee])))
    return order, []
