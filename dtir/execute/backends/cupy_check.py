"""Collectives of devices compared with the reference: what all ranks bring and get is brought to the host, and compared there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtir.execute.checked import Checker, wrong_elements
from dtir.execute.fabric import Combine
from dtir.execute.steps import Step
from dtir.execute.together import Parts, by_rank
from dtir.execute.values import Held

if TYPE_CHECKING:
    from dtir.execute.backends.cupy_session import DeviceSession


@dataclass(slots=True)
class Pool:
    """What the devices of a run bring together, exchange by exchange; the last one to come compares.

    Args:
        ranks: number of ranks of the program.
        wrong: elements that differ, by step.
    """

    ranks: int
    wrong: dict[int, int]
    _waiting: dict[tuple[int, int], list[Parts]] = field(default_factory=dict[tuple[int, int], list[Parts]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bring(self, step: Step, turn: int, parts: Sequence[Parts], count: int, combine: Combine | None) -> None:
        """Add what one device has of the operands, `count` of them, and of the results.

        Args:
            turn: how often the device has come to the step.
        """
        with self._lock:
            held = self._waiting.setdefault((step.index, turn), [{} for _ in parts])
            for one, more in zip(held, parts, strict=True):
                one.update(more)
            if len(held[-1]) < self.ranks or step.exchange is None:
                return
            del self._waiting[step.index, turn]
            found = wrong_elements(step.exchange, held[:count], held[count:], combine)
            self.wrong[step.index] = self.wrong.get(step.index, 0) + found


class DeviceChecker(Checker):
    """Compares the exchanges of one device's ranks, together with those of the others.

    Args:
        session: the device's.
        pool: of all devices.
    """

    def __init__(self, session: DeviceSession, pool: Pool) -> None:
        super().__init__(pool.ranks, wrong=pool.wrong)
        self._session = session
        self._pool = pool
        self._turns: dict[int, int] = {}

    def check(
        self,
        step: Step,
        ranks: Sequence[int],
        operands: Sequence[Held],
        results: Sequence[Held],
        combine: Combine | None,
    ) -> None:
        """Bring one exchange to the host; one that not all ranks take part in is left alone."""
        del ranks, combine
        request = step.exchange
        if request is None or len(step.ranks) != self.ranks:
            return
        turn = self._turns[step.index] = self._turns.get(step.index, 0) + 1
        brought = self._session.bring((*operands, *results))
        parts = [dict(by_rank(held)) for held in brought]
        self._pool.bring(step, turn, parts, len(operands), self._session.host_combine(request))
