"""Evaluation of HLO operations over an array module: what one operation does on all ranks at once.

Collectives and control flow are not here: they are steps of the executor.
"""

from __future__ import annotations

from dtir.execute.hlo.call import ArrayType, Context, Devices, HloCall, HloError
from dtir.execute.hlo.table import OPCODES, custom_call_targets, evaluate, is_known

__all__ = [
    "OPCODES",
    "ArrayType",
    "Context",
    "Devices",
    "HloCall",
    "HloError",
    "custom_call_targets",
    "evaluate",
    "is_known",
]
