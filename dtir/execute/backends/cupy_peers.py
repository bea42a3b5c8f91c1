"""Several devices of one process: which rank is where, how their threads meet, and the communicators among them.

Every device has a thread of its own. Before a step that spans devices their threads meet on the host and tell each other
which of their ranks take part and what these hold, so that a rank that never comes is an error and not a hang.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dtir.execute.backends.cupy_runtime import Communicator, DeviceError, DeviceRuntime
from dtir.execute.semantics import ExchangeError

PATIENCE_S = 300.0
"""A device that does not come to a step for so long never comes; mostly it is seen at once that it cannot."""

Places = tuple[int, ...]
"""Devices by their number among those of a session, ascending."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a device says of a step that spans devices.

    Args:
        step: the index of the step.
        ranks: its ranks that take part.
        shapes: of every operand what each rank holds.
        same: of every operand, whether all ranks of the device hold one array.
    """

    step: int
    ranks: tuple[int, ...]
    shapes: tuple[Mapping[int, tuple[int, ...]], ...]
    same: tuple[bool, ...]


class Peers:
    """The devices of a session.

    Args:
        runtime: the devices.
        devices: those of the session, by place.
        place_of: the place of every rank.
        patience_s: how long one waits for another; None: `PATIENCE_S`.
    """

    def __init__(
        self, runtime: DeviceRuntime, devices: Sequence[int], place_of: Sequence[int], patience_s: float | None = None
    ) -> None:
        self.runtime = runtime
        self.devices = tuple(devices)
        self.place_of = tuple(place_of)
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._communicators: dict[Places, Sequence[Communicator]] = {}
        self._meeting = threading.Condition()
        self._cards: dict[tuple[Places, int], dict[int, Card]] = {}
        self._turns: dict[tuple[Places, int], int] = {}
        self._waiting: dict[int, tuple[dict[int, Card], int]] = {}
        self._done: set[int] = set()
        self._failed: str | None = None

    def places(self, ranks: Sequence[int]) -> Places:
        """The devices of some ranks."""
        return tuple(sorted({self.place_of[rank] for rank in ranks}))

    def together(self, groups: Iterable[Sequence[int]]) -> list[Places]:
        """The devices that have to meet for groups of ranks: those that a group spans, and those that these share with others."""
        parts: list[set[int]] = []
        for group in groups:
            joined = set(self.places(group))
            apart = [part for part in parts if not part & joined]
            for part in parts:
                if part & joined:
                    joined |= part
            parts = [*apart, joined]
        return sorted(tuple(sorted(part)) for part in parts)

    # -- communicators -------------------------------------------------------------------------------------------------

    def connect(self, places: Places) -> None:
        """Make the communicator among some devices; before any thread runs, in one order.

        Raises:
            DeviceError: it cannot be made.
        """
        if len(places) > 1 and places not in self._communicators:
            self._communicators[places] = self.runtime.communicators([self.devices[place] for place in places])

    def end(self, places: Places, place: int) -> Communicator:
        """A device's end of a communicator; within it, devices are numbered by their position in `places`."""
        return self._communicators[places][places.index(place)]

    def check(self) -> None:
        """Ask all communicators for errors.

        Raises:
            DeviceError: there was one.
        """
        for ends in self._communicators.values():
            for end in ends:
                end.check()

    # -- on the host ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """All devices begin a step of the program's own list together."""
        with self._meeting:
            self._done.clear()

    def done(self, place: int) -> None:
        """A device is at the end of that step: it comes to no meeting until the next one."""
        with self._meeting:
            self._done.add(place)
            self._meeting.notify_all()

    def _stuck(self) -> bool:
        """Whether nobody is on the way any more: all are done, or wait for somebody."""
        return all(
            place in self._done or (place in self._waiting and len(self._waiting[place][0]) < self._waiting[place][1])
            for place in range(len(self.devices))
        )

    def meet(self, places: Places, place: int, card: Card) -> dict[int, Card]:
        """Wait for the other devices of a step.

        Returns:
            What each of them says.

        Raises:
            ExchangeError: one of them never arrives, or is at another step.
            DeviceError: another device has failed.
        """
        with self._meeting:
            turn = self._turns.get((places, place), 0)
            self._turns[places, place] = turn + 1
            cards = self._cards.setdefault((places, turn), {})
            cards[place] = card
            self._waiting[place] = (cards, len(places))
            self._meeting.notify_all()
            self._meeting.wait_for(
                lambda: len(cards) == len(places) or self._failed is not None or self._stuck(), self._patience_s
            )
            complete = len(cards) == len(places)
            del self._waiting[place]
            if self._failed is not None and len(cards) < len(places):
                raise DeviceError(self._failed)
            self._cards.pop((places, turn), None)
        if not complete:
            absent = [other for other in places if other not in cards]
            raise ExchangeError(
                f"ranks {_few(card.ranks)} wait for the ranks of device {self.devices[absent[0]]}, which never arrive: "
                "they took another branch or left the loop"
            )
        other = next((found for found in cards.values() if found.step != card.step), None)
        if other is not None:
            raise ExchangeError(
                f"ranks {_few(card.ranks)} wait for ranks {_few(other.ranks)}, which never arrive: "
                "they are at another step"
            )
        return cards

    def abort(self, reason: str) -> None:
        """A device has failed: nobody waits for it any longer."""
        with self._meeting:
            self._failed = self._failed or f"another device has failed: {reason}"
            self._meeting.notify_all()
        for ends in self._communicators.values():
            for end in ends:
                end.close(abort=True)
        self._communicators.clear()

    def close(self) -> None:
        """Give communicators back."""
        for ends in self._communicators.values():
            for end in ends:
                end.close()
        self._communicators.clear()


def _few(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks[:8]) + (", ..." if len(ranks) > 8 else "")
