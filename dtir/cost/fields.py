"""Reading one JSON object field by field: kinds and ranges are checked, unknown fields named, everything reported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import TypeVar, cast

from dtir.schema.diagnostics import DiagnosticBag

T = TypeVar("T")
Choice = TypeVar("Choice", bound=Enum)

FIELD, VALUE = "profile.field", "profile.value"


class Fields:
    """The fields of one JSON object; whatever is wrong goes into the bag, and a stand-in is returned."""

    def __init__(self, value: object, path: tuple[str, ...], bag: DiagnosticBag) -> None:
        self.path = path
        self._bag = bag
        self._used: set[str] = set()
        found = as_object(value)
        self._fields: Mapping[str, object] = found or {}
        # What is no object at all is one finding, not one for each field that it lacks.
        self.is_object = found is not None
        if found is None:
            self._error(FIELD, f"found {kind_of(value)}, wanted an object", path)

    def _error(self, code: str, message: str, path: tuple[str, ...]) -> None:
        hint = "see the schema in dtir.cost.profile_json" if code == FIELD else "times in s, sizes in bytes, rates a s"
        self._bag.error(code, message, *path, hint=hint)

    def get(self, name: str, default: T, check: Callable[[object], T | None], wanted: str) -> T:
        """An optional field that `check` accepts (by giving its value), else the default."""
        self._used.add(name)
        if name not in self._fields:
            return default
        value = self._fields[name]
        found = check(value)
        if found is None:
            code = VALUE if isinstance(value, (int, float)) and not isinstance(value, bool) else FIELD
            self._error(code, f"found {shown(value)}, wanted {wanted}", (*self.path, name))
            return default
        return found

    def need(self, name: str, default: T, check: Callable[[object], T | None], wanted: str) -> T:
        """A field that must be there."""
        if name not in self._fields:
            self._used.add(name)
            if self.is_object:
                self._error(FIELD, f"{name} is missing, wanted {wanted}", self.path)
            return default
        return self.get(name, default, check, wanted)

    def number(self, name: str, default: float, *, least: float = 0.0, required: bool = True) -> float:
        read = self.need if required else self.get
        return read(name, default, lambda value: finite_number(value, least), f"a finite number of at least {least:g}")

    def maybe(self, name: str) -> float | None:
        """A positive number, or null."""
        self._used.add(name)
        value = self._fields.get(name)
        if value is None:
            return None
        found = finite_number(value, 0.0)
        if not found:
            self._error(VALUE, f"found {shown(value)}, wanted a positive number or null", (*self.path, name))
            return None
        return found

    def whole(self, name: str, default: int, *, least: int = 0, required: bool = True) -> int:
        read = self.need if required else self.get
        return read(name, default, lambda value: whole_number(value, least), f"a whole number of at least {least}")

    def maybewhole_number(self, name: str, *, least: int = 1) -> int | None:
        self._used.add(name)
        value = self._fields.get(name)
        if value is None:
            return None
        found = whole_number(value, least)
        if found is None:
            self._error(VALUE, f"found {shown(value)}, wanted a whole number of at least {least}, or null",
                        (*self.path, name))  # fmt: skip
        return found

    def text(self, name: str, default: str = "", *, required: bool = True) -> str:
        read = self.need if required else self.get
        return read(name, default, lambda value: value if isinstance(value, str) and (value or not required) else None,
                    "a text")  # fmt: skip

    def one_of(self, name: str, kinds: type[Choice], default: Choice, *, required: bool = False) -> Choice:
        names = {item.value: item for item in kinds}
        read = self.need if required else self.get
        return read(name, default, lambda value: names.get(value) if isinstance(value, str) else None,
                    f"one of {', '.join(names)}")  # fmt: skip

    def rows(self, name: str) -> list[Fields]:
        """The objects of a list; none where the field is absent."""
        items = self.get(name, list[object](), as_list, "a list")
        return [Fields(item, (*self.path, name, str(place)), self._bag) for place, item in enumerate(items)]

    def child(self, name: str) -> Fields | None:
        self._used.add(name)
        value = self._fields.get(name)
        return None if value is None else Fields(value, (*self.path, name), self._bag)

    def numbers(self, name: str) -> dict[str, float]:
        """Positive numbers by name."""
        inner = self.child(name)
        if inner is None:
            return {}
        return {key: number for key in inner.names() if (number := inner.maybe(key)) is not None}

    def names(self) -> list[str]:
        return list(self._fields)

    def raw(self, name: str) -> object:
        self._used.add(name)
        return self._fields.get(name)

    def wrong(self, message: str, *path: str) -> None:
        """Something is wrong with values that are each right."""
        self._error(VALUE, message, (*self.path, *path))

    def done(self) -> None:
        """Report the fields that nobody asked for."""
        for name in self._fields:
            if name not in self._used:
                close = get_close_matches(name, self._used, n=1)
                meant = f": did you mean {close[0]}?" if close else f"; known are {', '.join(sorted(self._used))}"
                self._error(FIELD, f"unknown field {shown(name)}{meant}", self.path)


_KINDS: dict[type[object], str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """What a JSON value is, for messages."""
    return _KINDS.get(type(value), "a number")


def as_list(value: object) -> list[object] | None:
    """A JSON list, else None."""
    return cast("list[object]", value) if isinstance(value, list) else None


def as_object(value: object) -> Mapping[str, object] | None:
    """A JSON object, else None."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def shown(value: object) -> str:
    """A JSON value for messages, cut where it is long."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def finite_number(value: object, least: float) -> float | None:
    """A finite number of at least `least`, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= least else None


def whole_number(value: object, least: int) -> int | None:
    """A whole number of at least `least` that fits into 63 bits, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63 else None
