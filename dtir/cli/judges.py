"""The judges of ``dtir verify``: who looks at a program, and who could not.

The structural judge is always here and always runs. The others are those of `dtir.verify`, one function
``judge(program, judges, mode) -> VerificationReport``; where that package is absent the result says that nobody looked.
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
    """What `dtir.verify` offers."""

    def judge(self, program: DistributedTaskIR, judges: Sequence[str], mode: str) -> VerificationReport:
        """The findings of the named judges, in a stable order."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and by whom.

    Args:
        diagnostics: findings in the order of the judges.
        ran: the judges that looked.
        absent: the judges that were asked for and are not part of this version.
    """

    diagnostics: tuple[Diagnostic, ...]
    ran: tuple[str, ...]
    absent: tuple[str, ...] = ()


def verifier() -> Verifier | None:
    """`dtir.verify`; None where this version has none."""
    if importlib.util.find_spec(VERIFIER) is None:
        return None
    return cast("Verifier", importlib.import_module(VERIFIER))


def judge(
    program: DistributedTaskIR, judges: Sequence[str], *, mode: str = "check", explicit: bool = True
) -> Judgement:
    """Have a program judged.

    Args:
        program: the program.
        judges: names of `JUDGES`; the structural one runs even when it is not among them.
        mode: ``check`` the layouts as stated, or ``infer`` them.
        explicit: whether the user named the judges; the note about an absent one is then a warning.
    """
    structure = tuple(program.diagnostics())
    further = [name for name in judges if name != STRUCTURE]
    if not further and mode == "check":
        return Judgement(structure, (STRUCTURE,))
    found = verifier()
    if found is None:
        absent = tuple(further)
        notes = tuple(_absent(name, explicit) for name in absent)
        if mode != "check":
            notes = (*notes, _absent(f"{mode} mode", explicit))
        return Judgement((*structure, *notes), (STRUCTURE,), absent)
    if any(item.severity is Severity.ERROR for item in structure):
        # The further judges take the structure for granted.
        return Judgement(structure, (STRUCTURE,))
    return Judgement((*structure, *found.judge(program, further, mode)), (STRUCTURE, *further))


def _absent(what: str, explicit: bool) -> Diagnostic:
    return Diagnostic(
        "verify.judge_unavailable",
        f"{what} is not part of this version: nothing was judged by it",
        severity=Severity.WARNING if explicit else Severity.INFO,
        hint="read the result as that of the judges that ran",
        subject=(what,),
    )
