"""The judges of ``dtir verify``: who looks at a program, in which mode and for which runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic

STRUCTURE = "structure"
JUDGES = (STRUCTURE, "static", "value")
DEFAULT_JUDGES = (STRUCTURE, "static")
MODES = ("check", "infer")
STRICTNESS = ("mpi", "nccl", "gpu-p2p")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and by whom.

    Args:
        diagnostics: findings in the order of the judges.
        ran: the judges that were asked to look.
    """

    diagnostics: tuple[Diagnostic, ...]
    ran: tuple[str, ...]


def judge(
    program: DistributedTaskIR,
    judges: Sequence[str],
    *,
    mode: Literal["check", "infer"] | None = None,
    strictness: Literal["mpi", "nccl", "gpu-p2p"] = "nccl",
) -> Judgement:
    """Have a program judged.

    Args:
        program: the program.
        judges: names of `JUDGES`; the structural one runs even when it is not among them.
        mode: ``check`` the layouts as stated, ``infer`` them, or None: as the program asks for.
        strictness: which orders of communication the runtime tolerates, see `dtir.verify.verify`.
    """
    from dtir.verify import verify  # the rules are loaded when a program is judged, not with the command line

    wanted = (STRUCTURE, *(name for name in JUDGES if name in judges and name != STRUCTURE))
    return Judgement(tuple(verify(program, judges=wanted, mode=mode, strictness=strictness)), wanted)
