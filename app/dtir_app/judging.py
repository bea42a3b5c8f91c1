"""Who judges an opened program: the structural verifier always, the static judge where the verifier is installed."""

from __future__ import annotations

import importlib
import importlib.util

from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic

JUDGES = ("structure", "static")


def judge(program: DistributedTaskIR) -> tuple[Diagnostic, ...]:
    """Every finding about a program, in the order of the judges."""
    if importlib.util.find_spec("dtir.verify") is not None:
        verify = getattr(importlib.import_module("dtir.verify"), "verify", None)
        if verify is not None:
            return tuple(verify(program, judges=JUDGES, mode=None))
    return tuple(program.diagnostics())
