"""Results of collectives compared with the reference, element by element: the ``#wrong`` of nccl-tests.

It is done in a repetition of its own that nobody measures. What all ranks bring and get comes together in one process, which
does the collective once more as the reference does it. Reductions may differ by rounding, everything else not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from dtir.execute.accumulate import gamma, working_dtype
from dtir.execute.dtypes import Array, unit_roundoff
from dtir.execute.exchange import Exchange
from dtir.execute.fabric import Combine, LocalFabric
from dtir.execute.steps import Step
from dtir.execute.together import Parts, by_rank, held_of, joined, packed
from dtir.execute.values import Held, rows
from dtir.ir.collectives import CollectiveKind
from dtir.ir.reductions import ReductionKind

_ROUNDED = frozenset({ReductionKind.SUM, ReductionKind.AVERAGE, ReductionKind.PRODUCT})
_REDUCING = frozenset({CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER})


@runtime_checkable
class GatheringFabric(Protocol):
    """A fabric of several processes that can bring together what they have."""

    def everybody(self) -> bool:
        """Whether all ranks of all processes are there now: else some would not answer."""
        ...

    def gather(self, data: bytes) -> list[bytes] | None:
        """What every process has to say, at the first one; None at the others."""
        ...


@dataclass(slots=True)
class Checker:
    """Compares the exchanges of one repetition.

    Args:
        ranks: number of ranks of the program.
        fabric: that of the session; None: all ranks are in this process.
        wrong: elements that differ, by step; only in the process that compares.
    """

    ranks: int
    fabric: GatheringFabric | None = None
    wrong: dict[int, int] = field(default_factory=dict[int, int])

    def check(
        self,
        step: Step,
        ranks: Sequence[int],
        operands: Sequence[Held],
        results: Sequence[Held],
        combine: Combine | None,
    ) -> None:
        """Compare one exchange; one that not all ranks take part in is left alone.

        Args:
            ranks: those of this process that take part.
        """
        request = step.exchange
        if request is None or len(step.ranks) != self.ranks:
            return
        if self.fabric is None:
            if len(ranks) != self.ranks:
                return
            parts = [by_rank(held) for held in (*operands, *results)]
        else:
            if not self.fabric.everybody():
                return
            values = (*operands, *results)
            gathered = self.fabric.gather(packed(values))
            if gathered is None:
                return
            parts = joined(gathered, [np.asarray(rows(held)[0]).dtype for held in values])
        count = len(operands)
        found = wrong_elements(request, parts[:count], parts[count:], combine)
        self.wrong[step.index] = self.wrong.get(step.index, 0) + found


def wrong_elements(
    request: Exchange, operands: Sequence[Parts], results: Sequence[Parts], combine: Combine | None = None
) -> int:
    """How many elements of the results differ from those of the reference.

    Args:
        operands, results: one a value, by rank.
    """
    ranks = tuple(sorted(results[0]))
    fabric = LocalFabric(ranks)
    given = [held_of(parts) for parts in operands]
    expected = fabric.exchange(request, given, ranks, combine)
    moduli = _moduli(request, operands)
    allowed = fabric.exchange(request, [held_of(parts) for parts in moduli], ranks, None) if moduli else None
    factor = _factor(request, operands) if moduli else 0.0
    wrong = 0
    for number, (mine, reference) in enumerate(zip(results, expected, strict=True)):
        bounds: Mapping[int, Array] = by_rank(allowed[number]) if allowed is not None else {}
        for rank, wanted in by_rank(reference).items():
            bound = factor * bounds[rank] if rank in bounds else 0.0
            wrong += _differing(mine[rank], wanted, bound)
    return wrong


def _moduli(request: Exchange, operands: Sequence[Parts]) -> list[Parts]:
    """Moduli of what is reduced with rounding; nothing where the result is exact."""
    exact = request.kind not in _REDUCING or request.reduction not in _ROUNDED
    if exact or any(unit_roundoff(array.dtype) == 0 for parts in operands for array in parts.values()):
        return []
    return [{rank: np.abs(array.astype(np.complex128)) for rank, array in parts.items()} for parts in operands]


def _factor(request: Exchange, operands: Sequence[Parts]) -> float:
    """Twice the error of so many roundings, and one of the result (Higham, section 4.2)."""
    dtype = next(iter(operands[0].values())).dtype
    members = max(len(group) for group in request.groups)
    return 2 * gamma(members - 1, unit_roundoff(working_dtype(dtype))) + unit_roundoff(dtype)


def _differing(found: Array, wanted: Array, bound: Array | float) -> int:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return int(wanted.size)
    if found.dtype.kind in "iub":
        return int((found != wanted).sum())
    a, b = found.astype(np.complex128), wanted.astype(np.complex128)
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (apart <= bound)
    return int(same.size - same.sum())
