"""Small numbers for equal things, so that work done for one task is reused for every task like it.

Looking up by identity comes first: programs share most of their types, layouts and rank sets as objects, and hashing a
record costs more than the rest of the look-up.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """Equal things get equal numbers; the first of them is kept.

    >>> names = Interned[str]()
    >>> names.number("a"), names.number("b"), names.number("a"), names.items
    (0, 1, 0, ['a', 'b'])
    """

    __slots__ = ("_by_identity", "_by_value", "_kept", "items")

    def __init__(self) -> None:
        self.items: list[T] = []
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[T, int] = {}
        # Keeps looked-up objects alive, so that an identity is never used twice.
        self._kept: list[T] = []

    def number(self, item: T) -> int:
        """The number of a thing."""
        identity = id(item)
        known = self._by_identity.get(identity)
        if known is not None:
            return known
        number = self._by_value.get(item)
        if number is None:
            number = len(self.items)
            self._by_value[item] = number
            self.items.append(item)
        self._by_identity[identity] = number
        self._kept.append(item)
        return number
