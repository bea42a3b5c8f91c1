"""What the value-level judge found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtir.ir import ValueId
from dtir.schema.diagnostics import DiagnosticSet
from dtir.verify.value.classify import Likeness
from dtir.verify.value.compare import Finding
from dtir.verify.value.differences import RankDifference
from dtir.verify.value.repair import Repair


@dataclass(frozen=True, slots=True)
class BadValue:
    """A value found wrong whose operands are right.

    Args:
        value: its id.
        name: its name.
        task: name of the task that makes it; None for an input.
        findings: what is wrong with it.
        likeness: what the wrong value looks like, when it has a meaning at all.
        repairs: changes of the task that make it right, shortest first.
        differences: by how much, rank by rank; empty where arrays are missing or misshapen.
    """

    value: ValueId
    name: str
    task: str | None
    findings: tuple[Finding, ...]
    likeness: Likeness | None
    repairs: tuple[Repair, ...]
    differences: tuple[RankDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueVerdict:
    """What the judge found.

    Args:
        diagnostics: every finding, in definition order.
        bad: the first bad value of every chain, in definition order.
        judged: names of the values whose meaning was compared.
        unjudged: names of values that were not, with the reason; what depends on a bad value is not listed.
        reduced: how the run was smaller than the program, in words; empty when it was not.
    """

    diagnostics: DiagnosticSet
    bad: tuple[BadValue, ...] = ()
    judged: tuple[str, ...] = ()
    unjudged: Mapping[str, str] | None = None
    reduced: str = ""

    @property
    def ok(self) -> bool:
        """True when nothing is wrong (something may be unjudged)."""
        return self.diagnostics.ok

    @property
    def first_bad_value(self) -> str | None:
        """Name of the first bad value in definition order."""
        return self.bad[0].name if self.bad else None

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The repairs of the first bad value."""
        return self.bad[0].repairs if self.bad else ()
