"""`FrozenDict`: an immutable mapping with string keys, kept in key order; `freeze` and `thaw`.

Equality keeps `True`, `1` and `1.0` apart (and `0.0` from `-0.0`): they are different text in a snapshot, so programs
that hold them have different digests, and equal programs must have equal digests.

>>> FrozenDict({"b": [1, 2], "a": {"x": None}})
FrozenDict({'a': FrozenDict({'x': None}), 'b': (1, 2)})
>>> FrozenDict({"x": True}) == FrozenDict({"x": 1})
False
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, cast

from typing_extensions import TypeVar

V = TypeVar("V", default=Any, covariant=True)


def exact_key(value: Any) -> Hashable:
    """A hashable stand-in of a frozen value: equal exactly when the canonical texts are equal.

    Plain `==` holds `True == 1 == 1.0` and `0.0 == -0.0`; the stand-in does not. A class whose values are another form
    of plain ones (a run of ranks for a tuple) says so by a method ``plain_form``.
    """
    if isinstance(value, float):
        return ("float", value, math.copysign(1.0, value))
    if isinstance(value, (bool, int)):
        return (type(value).__name__, value)
    if isinstance(value, tuple):
        return ("tuple", *(exact_key(item) for item in cast("tuple[Any, ...]", value)))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(exact_key(item) for item in cast("frozenset[Any]", value)))
    form = getattr(value, "plain_form", None)
    plain = value if form is None else form()
    return value if plain is value else exact_key(plain)


def exact_equal(left: Any, right: Any) -> bool:
    """True when two frozen values have the same canonical text.

    The walk keeps its own stack: values may nest as deep as memory allows, except for sets inside sets.
    """
    stack: list[tuple[Any, Any]] = [(left, right)]
    while stack:
        mine, theirs = stack.pop()
        if mine is theirs:
            continue
        kind = cast("type[Any]", type(mine))
        if kind is not type(theirs):
            # Only two forms of one value can be equal across classes (a run of ranks and a tuple).
            if _is_plain(mine) or _is_plain(theirs) or mine != theirs:
                return False
        elif kind is tuple:
            if len(mine) != len(theirs):
                return False
            stack.extend(zip(mine, theirs, strict=True))
        elif kind is FrozenDict:
            if mine.keys() != theirs.keys():
                return False
            stack.extend((value, theirs[key]) for key, value in mine.items())
        elif (names := getattr(kind, "__exact_fields__", None)) is not None:
            stack.extend((getattr(mine, name), getattr(theirs, name)) for name in names)
        elif kind is float:
            if mine != theirs or math.copysign(1.0, mine) != math.copysign(1.0, theirs):
                return False
        elif kind is frozenset:
            if exact_key(mine) != exact_key(theirs):
                return False
        elif mine != theirs:
            return False
    return True


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, bytes, frozenset))


class FrozenDict(Mapping[str, V]):
    """An immutable, hashable mapping from strings to frozen values.

    Args:
        source: any mapping, or an iterable of pairs; values are frozen recursively.
        items: pairs, as an alternative to `source`; repeated keys are refused.

    Raises:
        TypeError: both arguments given, or a key is not a string.
        ValueError: `items` repeats a key.
    """

    __slots__ = ("_hash", "_mapping")

    _mapping: dict[str, V]
    _hash: int | None

    def __init__(
        self,
        source: Mapping[str, V] | None = None,
        *,
        items: Iterable[tuple[str, V]] | None = None,
    ) -> None:
        if source is not None and items is not None:
            raise TypeError("FrozenDict takes a mapping or items, not both")
        pairs = list(source.items()) if source is not None else list(items or ())
        collected: dict[str, Any] = {}
        for key, value in pairs:
            if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
                raise TypeError("FrozenDict keys must be strings")
            if key in collected:
                raise ValueError(f"duplicate FrozenDict key: {key!r}")
            collected[key] = freeze(value)
        object.__setattr__(self, "_mapping", {key: collected[key] for key in sorted(collected)})
        object.__setattr__(self, "_hash", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"FrozenDict is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"FrozenDict is immutable: cannot delete {name!r}")

    def __getitem__(self, key: str) -> V:
        return self._mapping[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def __len__(self) -> int:
        return len(self._mapping)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mapping):
            return NotImplemented
        theirs = (
            cast("FrozenDict[Any]", other)
            if isinstance(other, FrozenDict)
            else _frozen_or_none(cast("Mapping[Any, Any]", other))
        )
        return theirs is not None and exact_equal(self, theirs)

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(tuple(self._mapping.items())))
        return cast("int", self._hash)

    def __repr__(self) -> str:
        return f"FrozenDict({{{', '.join(f'{key!r}: {value!r}' for key, value in self._mapping.items())}}})"

    def __reduce__(self) -> tuple[type[FrozenDict[Any]], tuple[dict[str, Any]]]:
        return (FrozenDict, (dict(self._mapping),))

    def evolve(self, **changes: Any) -> FrozenDict[Any]:
        """A copy with some keys replaced or added."""
        return FrozenDict({**self._mapping, **changes})

    def to_dict(self) -> dict[str, Any]:
        """A plain, mutable copy (tuples become lists)."""
        return {key: thaw(value) for key, value in self._mapping.items()}


def _frozen_or_none(mapping: Mapping[Any, Any]) -> FrozenDict[Any] | None:
    if not all(isinstance(key, str) for key in mapping):
        return None
    return FrozenDict(mapping)


def frozen_map(entries: dict[str, Any]) -> FrozenDict[Any]:
    """A `FrozenDict` of values that are frozen already, however deep they are."""
    made: FrozenDict[Any] = FrozenDict.__new__(FrozenDict)
    object.__setattr__(made, "_mapping", {key: entries[key] for key in sorted(entries)})
    object.__setattr__(made, "_hash", None)
    return made


EMPTY_MAP: FrozenDict[Any] = FrozenDict()


def freeze(value: Any) -> Any:
    """Mappings to `FrozenDict`, lists to tuples, sets to frozensets; everything else unchanged, however deep.

    Raises:
        TypeError: a key is not a string, or a member of a set cannot be hashed.
    """
    # Containers wait on the stack of open ones until their parts are frozen; the walk never recurses.
    open_ones: list[tuple[Iterator[Any], list[Any], Callable[[list[Any]], Any]]] = []
    item = value
    while True:
        container = _container(item)
        if container is not None:
            open_ones.append(container)
        elif not open_ones:
            return item
        else:
            open_ones[-1][1].append(item)
        while (item := next(open_ones[-1][0], _NO_MORE)) is _NO_MORE:
            _, parts, finish = open_ones.pop()
            item = finish(parts)
            if not open_ones:
                return item
            open_ones[-1][1].append(item)


_NO_MORE: Any = object()


def _container(value: Any) -> tuple[Iterator[Any], list[Any], Callable[[list[Any]], Any]] | None:
    """The parts of a container that is to be frozen, room for the frozen ones, and how to put them together."""
    if isinstance(value, FrozenDict):
        return None
    if isinstance(value, Mapping):
        keys: list[Any] = list(cast("Mapping[Any, Any]", value))
        for key in keys:
            if not isinstance(key, str):
                raise TypeError("FrozenDict keys must be strings")
        values = cast("Mapping[Any, Any]", value).values()
        return iter(values), [], lambda parts: frozen_map(dict(zip(keys, parts, strict=True)))
    if isinstance(value, (list, tuple)):
        return iter(cast("list[Any]", value)), [], tuple
    if isinstance(value, (set, frozenset)):
        return iter(cast("set[Any]", value)), [], frozenset
    return None


def thaw(value: Any) -> Any:
    """The mutable counterpart of `freeze`; a frozenset becomes a list sorted by `repr`."""
    if isinstance(value, FrozenDict):
        return value.to_dict()
    if isinstance(value, tuple):
        return [thaw(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, frozenset):
        return [thaw(item) for item in sorted(cast("frozenset[Any]", value), key=repr)]
    return value
