"""Attributes of HLO operations as values: what the importer writes as ``hlo.<name>``, in the form that evaluators use.

| attribute of a task | value |
|---|---|
| `hlo.slice` | `Slices` |
| `hlo.padding` | `Padding` |
| `hlo.window` | `Window` |
| `hlo.literal` | the numbers of a constant (`literal`); absent with `hlo.elided` |
| any other `hlo.<name>` | as it stands, under its plain name |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "hlo."


@dataclass(frozen=True, slots=True)
class Slices:
    """Per dim first index, limit and step."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Padding:
    """Per dim elements before, after (negative: cropped) and between."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Per window dim; `pad` is (before, after)."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[tuple[int, int], ...]
    lhs_dilate: tuple[int, ...]
    rhs_dilate: tuple[int, ...]
    reversed: tuple[bool, ...]

    @classmethod
    def plain(cls, rank: int) -> Window:
        """A window of one element in every dim."""
        ones = (1,) * rank
        return cls(ones, ones, ((0, 0),) * rank, ones, ones, (False,) * rank)


def decode(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a task by their HLO names.

    Raises:
        KeyError: a slice, padding or window lacks a part.
    """
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        if isinstance(value, Mapping):
            value = _structured(name, value)  # pyright: ignore[reportUnknownArgumentType] - frozen data of any kind
        found[name] = value
    return found


def _structured(name: str, value: Mapping[str, Any]) -> Any:
    match name:
        case "slice":
            return Slices(value["starts"], value["limits"], value["strides"])
        case "padding":
            return Padding(value["low"], value["high"], value["interior"])
        case "window":
            return Window(
                value["size"],
                value["stride"],
                tuple(zip(value["low"], value["high"], strict=True)),
                value["lhs_dilation"],
                value["rhs_dilation"],
                value["reversed"],
            )
        case _:
            return value
