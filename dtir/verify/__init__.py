"""The verifier: is a distributed program right?

Three judges: *structure* (`dtir.ir.structure`; always runs first), *static* (the rules of this package, on layouts, order and
resources), *value* (`dtir.verify.value`, runs the program on small data). A program that is structurally broken is not judged
further.

>>> from dtir.verify import verify
>>> verify(program).ok  # doctest: +SKIP
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, Severity, VerificationReport
from dtir.verify import (
    accumulate,
    collective,
    deadlock,
    halo,
    memory,
    moe,
    order,
    ownership,
    p2p,
    partial,
    pipeline,
    race,
    redundant,
    reshard,
    scale,
    sharding,
    symbol,
    unknown,
)
from dtir.verify.context import Context, Mode, Strictness
from dtir.verify.modes import mode_of

__all__ = ["JUDGES", "RULES", "STRICTNESS", "Context", "Mode", "Rule", "Strictness", "judge", "mode_of", "verify"]

Rule: TypeAlias = Callable[[Context], Iterator[Diagnostic]]

JUDGES = ("structure", "static", "value")
STRICTNESS: tuple[Strictness, ...] = ("mpi", "nccl", "gpu-p2p")

RULES: tuple[Rule, ...] = (
    *unknown.RULES,
    *sharding.RULES,
    *symbol.RULES,
    *ownership.RULES,
    *partial.RULES,
    *collective.RULES,
    *scale.RULES,
    *reshard.RULES,
    *p2p.RULES,
    *order.RULES,
    *deadlock.RULES,
    *race.RULES,
    *memory.RULES,
    *pipeline.RULES,
    *accumulate.RULES,
    *moe.RULES,
    *halo.RULES,
    *redundant.RULES,
)
"""Every static rule, in the order in which their findings are reported."""

RULES_OVER_RANKS: frozenset[Rule] = frozenset(
    (
        *ownership.RULES,
        collective.broadcast_roots,
        *p2p.RULES,
        *order.RULES,
        *deadlock.RULES,
        *race.RULES,
        *pipeline.RULES,
    )
)
"""The rules that look at single ranks; all others look at axes, whose sizes cost nothing."""

MAX_JUDGED_RANKS = 1 << 20
"""Largest mesh whose ranks are looked at one by one: beyond it `RULES_OVER_RANKS` are left out, and the report says so."""


def verify(
    program: DistributedTaskIR,
    *,
    judges: Sequence[str] = ("structure", "static"),
    mode: Mode | None = None,
    strictness: Strictness = "nccl",
) -> VerificationReport:
    """Judge a program and report every finding, in a stable order.

    Args:
        program: the program.
        judges: names of `JUDGES`; structure runs even when it is not among them.
        mode: ``check`` judges layouts as stated; ``infer`` derives what is pending, for documents that cannot say it; None
            chooses (see `mode_of`).
        strictness: which orders of communication the runtime tolerates: ``mpi`` (an order for each communicator), ``nccl`` (one
            order for all communicators of a device), ``gpu-p2p`` (an ungrouped send waits for its receiver).

    Raises:
        ValueError: an unknown judge, mode or strictness.
    """
    _check_argument("judges", judges, JUDGES)
    _check_argument("mode", () if mode is None else (mode,), ("check", "infer"))
    _check_argument("strictness", (strictness,), STRICTNESS)
    structure = program.diagnostics()
    further = [name for name in JUDGES[1:] if name in judges]
    if not further:
        return structure
    if not structure.ok:
        return VerificationReport((*structure, _skipped(further, structure)))
    found = list(structure)
    known = set(structure)
    for name in further:
        for item in judge(program, (name,), mode=mode, strictness=strictness):
            # The structure speaks of some codes too; the same finding is made once.
            if item not in known:
                found.append(item)
    return VerificationReport(tuple(found))


def judge(
    program: DistributedTaskIR,
    judges: Sequence[str],
    mode: str | None = None,
    strictness: Strictness = "nccl",
) -> VerificationReport:
    """The findings of the judges beyond structure, on a structurally valid program.

    Args:
        judges: ``static``, ``value``, in the order in which they report.
        mode: ``check``, ``infer``, or None to choose.
    """
    found: list[Diagnostic] = []
    chosen: Mode = "infer" if mode == "infer" else "check" if mode == "check" else mode_of(program)
    if "static" in judges:
        context = Context(program, chosen, strictness)
        many = program.mesh.size > MAX_JUDGED_RANKS
        if many:
            found.append(_too_many_ranks(program.mesh.size))
        for rule in RULES:
            if not (many and rule in RULES_OVER_RANKS):
                found += rule(context)
    if "value" in judges:
        from dtir.verify.value import judge_values

        found += judge_values(program).diagnostics
    # A value that a task takes twice is at fault once.
    return VerificationReport(tuple(dict.fromkeys(found)))


def _check_argument(name: str, given: Sequence[str], known: Sequence[str]) -> None:
    for item in given:
        if item not in known:
            raise ValueError(f"{name}={item!r} ({type(item).__name__}) is none of {', '.join(known)}")


def _too_many_ranks(count: int) -> Diagnostic:
    return Diagnostic(
        "verify.skipped",
        f"the mesh has {count} ranks: owners, transfers, order and races were not judged, which are looked at rank by rank "
        f"up to {MAX_JUDGED_RANKS}",
        ("mesh",),
        severity=Severity.INFO,
        hint="judge the same program on a smaller mesh: layouts and groups follow the axes, not their sizes",
    )


def _skipped(judges: Sequence[str], structure: VerificationReport) -> Diagnostic:
    count = len(structure.errors)
    return Diagnostic(
        "verify.skipped",
        f"the program has {count} structural errors: it was not judged by {' and '.join(judges)}",
        severity=Severity.INFO,
        hint="mend the structural errors first; rules take the structure for granted",
    )
