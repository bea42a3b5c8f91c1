"""The value-level judge: does every value mean what the undivided program says?"""

from __future__ import annotations

from dtir.verify.value.compare import Fault
from dtir.verify.value.judge import judge_values
from dtir.verify.value.repair import Repair
from dtir.verify.value.verdict import BadValue, ValueVerdict

__all__ = ["BadValue", "Fault", "Repair", "ValueVerdict", "judge_values"]
