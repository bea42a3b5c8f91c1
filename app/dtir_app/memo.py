"""What is made once a program and kept with it: scenes, texts for the search, orders of tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

Made = TypeVar("Made")


class Memo(dict[object, object]):
    """Results by key; every key is used by one function alone, which makes what it holds.

    >>> Memo().made("answer", lambda: 42)
    42
    """

    def made(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What is kept under a key, made now when it is not there.

        Two threads may make it at the same time; both get something equal, and one of them is kept.
        """
        if key not in self:
            self[key] = make()
        return cast(Made, self[key])

    def forget_oldest(self, kind: str, keep: int) -> None:
        """Of the keys ``(kind, ...)`` keep only the newest."""
        known = [key for key in self if isinstance(key, tuple) and key and key[0] == kind]
        for key in known[: max(0, len(known) - keep)]:
            self.pop(key, None)
