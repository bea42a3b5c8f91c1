"""Sends and receives of one computation, matched by channel and pairs in the order in which they stand."""

from __future__ import annotations

from collections import deque

from dtir.importers.hlo.asynchrony import Started
from dtir.importers.hlo.syntax import Instruction
from dtir.ir.ids import NodeId, ValueId

_Key = tuple[int | None, tuple[tuple[int, int], ...]]


class Peers:
    """Sends that wait for their receive, and receives by name."""

    def __init__(self) -> None:
        self._sends: dict[_Key, deque[Started]] = {}
        self._receives: dict[str, _Key] = {}

    def sent(
        self,
        send: Instruction,
        pairs: tuple[tuple[int, int], ...],
        task: NodeId,
        received: tuple[ValueId, ...],
    ) -> None:
        """Note a send; `received` are the values that arrive."""
        self._sends.setdefault((send.integer("channel_id"), pairs), deque()).append(Started(task, received))

    def posted(self, receive: Instruction, pairs: tuple[tuple[int, int], ...]) -> None:
        """Note a receive."""
        self._receives[receive.name] = (receive.integer("channel_id"), pairs)

    def take(self, receive: str) -> Started | None:
        """The send that a receive is completed by, each only once; None when none stands before it."""
        key = self._receives.get(receive)
        waiting = self._sends.get(key) if key is not None else None
        return waiting.popleft() if waiting else None
