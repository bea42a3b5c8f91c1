"""The judges of ``dtir verify``: who looks at a program, and who could not.

The structural judge is always here and always runs. The others are those of `dtir.verify`, entered through its one
function ``verify``; where that package is absent the result says that nobody looked.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, Severity, VerificationReport

STRUCTURE = "structure"
JUDGES = (STRUCTURE, "static", "value")
DEFAULT_JUDGES = (STRUCTURE, "static")
MODES = ("check", "infer")
VERIFIER = "dtir.verify"


class Verifier(Protocol):
    """`dtir.verify.verify`: the findings of the named judges, in a stable order; mode None lets it choose."""

    def __call__(
        self, program: DistributedTaskIR, *, judges: Sequence[str], mode: str | None
    ) -> VerificationReport: ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and by whom.

    Args:
        diagnostics: findings in the order of the judges.
        ran: the judges that looked.
    """

    diagnostics: tuple[Diagnostic, ...]
    ran: tuple[str, ...]


def verifier() -> Verifier | None:
    """The entry of `dtir.verify`; None where this version has none."""
    if importlib.util.find_spec(VERIFIER) is None:
        return None
    return cast("Verifier | None", getattr(importlib.import_module(VERIFIER), "verify", None))


def judge(
    program: DistributedTaskIR, judges: Sequence[str], *, mode: str | None = None, explicit: bool = True
) -> Judgement:
    """Have a program judged.

    Args:
        program: the program.
        judges: names of `JUDGES`; the structural one runs even when it is not among them.
        mode: ``check`` the layouts as stated, ``infer`` them, or None: as the program asks for.
        explicit: whether the user named the judges; the note about an absent one is then a warning.
    """
    further = tuple(name for name in judges if name != STRUCTURE)
    found = verifier() if further else None
    if found is not None:
        report = found(program, judges=(STRUCTURE, *further), mode=mode)
        return Judgement(tuple(report), (STRUCTURE, *further))
    notes = [_absent(name, explicit) for name in further]
    if mode == "infer":
        notes.append(_absent("infer mode", explicit=True))
    return Judgement((*program.diagnostics(), *notes), (STRUCTURE,))


def _absent(what: str, explicit: bool) -> Diagnostic:
    return Diagnostic(
        "verify.judge_unavailable",
        f"{what} is not part of this version: nothing was judged by it",
        severity=Severity.WARNING if explicit else Severity.INFO,
        hint="read the result as that of the judges that ran",
        subject=(what,),
    )
