"""Whether the local steps of a plan can run: found before anything is started, all of it in one go."""

from __future__ import annotations

from dtir.execute.dtypes import DtypeError
from dtir.execute.hlo import HloError
from dtir.execute.local import HLO, UnknownOperation, compile_step
from dtir.execute.placement import PlacementError
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.ops import OpError, similar_ops
from dtir.schema.diagnostics import Diagnostic

SHOWN = 3
"""Tasks that a finding names; the others are counted."""


def local_problems(plan: ExecPlan) -> list[Diagnostic]:
    """What keeps local steps from running: unknown operations, and constants whose values were left out."""
    unknown: dict[str, list[str]] = {}
    elided: list[str] = []
    broken: list[Diagnostic] = []
    for scope in plan.scopes:
        for step in scope.steps:
            if step.kind is not StepKind.LOCAL:
                continue
            if step.task.attributes.get("hlo.elided") is True:
                elided.append(_where(scope, step))
                continue
            try:
                compile_step(plan, scope, step)
            except UnknownOperation as error:
                unknown.setdefault(str(error), []).append(_where(scope, step))
            except (HloError, OpError, DtypeError, PlacementError, KeyError) as error:
                broken.append(_broken(scope, step, error))
    found = [_unknown(name, tasks) for name, tasks in unknown.items()]
    if elided:
        found.append(
            Diagnostic(
                "run.elided_constant",
                f"{len(elided)} constants stand without their values, constant({{...}}): {_some(elided)}",
                ("tasks",),
                hint="print the module with large constants, or run its communication only (--skip-local)",
                subject=tuple(elided[:SHOWN]),
            )
        )
    return found + broken


def _unknown(name: str, tasks: list[str]) -> Diagnostic:
    dialect, _, operation = name.partition(".")
    close = similar_ops(operation, dialect) if dialect != HLO else []
    hint = f"did you mean {dialect}.{close[0]}? " if close else ""
    return Diagnostic(
        "run.unknown_op",
        f"operation {name} is not known to the executors; {len(tasks)} tasks use it: {_some(tasks)}",
        ("tasks",),
        hint=f"{hint}name the module that defines it with --op-module, or run the communication only (--skip-local)",
        subject=(name, *tasks[:SHOWN]),
    )


def _broken(scope: ScopePlan, step: Step, error: Exception) -> Diagnostic:
    return Diagnostic(
        "run.unsupported",
        f"task {_where(scope, step)} cannot be run: {error}",
        ("tasks",),
        hint="dtir verify says what is wrong with it",
        subject=(str(step.task.id),),
    )


def _where(scope: ScopePlan, step: Step) -> str:
    return f"{step.name} in {scope.name}" if scope.name else step.name


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f", ... ({len(names) - SHOWN} more)" if len(names) > SHOWN else "")
