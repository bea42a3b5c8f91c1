"""Reading a glyph's properties: a value for all rows, a column, or a column through a mapper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import CategoricalColorMapper, CategoricalMarkerMapper, Glyph, LinearColorMapper, Transform


class UnknownLook(TypeError):
    """A figure uses something that has no SVG form here; our own omission."""


def rows_of(columns: dict[str, Any]) -> int:
    """Number of rows of a source."""
    return max((len(column) for column in columns.values()), default=0)


def read(glyph: Glyph, name: str, columns: dict[str, Any], count: int) -> Sequence[Any]:
    """A property of a glyph for every row.

    Raises:
        UnknownLook: it goes through a transform that is not known here.
    """
    described = glyph.lookup(name).property
    given = getattr(glyph, name)
    if not hasattr(described, "to_serializable"):
        return [given] * count
    spec = described.to_serializable(glyph, name, given)
    if isinstance(spec, Value):
        return [_plain(spec.value)] * count
    if isinstance(spec, Field):
        column = _plain_list(columns.get(spec.field, ()), count)
        transform = getattr(spec, "transform", None)
        return list(map(_mapper(transform), column)) if isinstance(transform, Transform) else column
    return [given] * count


def has(glyph: Glyph, name: str) -> bool:
    """Whether a glyph has a property."""
    return name in glyph.properties()


def _mapper(transform: Transform) -> Callable[[Any], Any]:
    """A mapper as a function; what it needs is read once, since reading a Bokeh property takes long."""
    match transform:
        case CategoricalColorMapper(factors=factors, palette=given, nan_color=fallback):
            return _factors(factors, given, fallback)
        case CategoricalMarkerMapper(factors=factors, markers=given, default_value=fallback):
            return _factors(factors, given, fallback)
        case LinearColorMapper(palette=palette, low=low, high=high, nan_color=fallback):
            return _ramp(list(palette), float(low or 0.0), float(high or 1.0), fallback)
        case _:
            raise UnknownLook(f"a transform {type(transform).__name__}")


def _factors(factors: Sequence[Any], given: Sequence[Any], fallback: Any) -> Callable[[Any], Any]:
    known = dict(zip(factors, given, strict=False))
    return lambda item: known.get(item, fallback)


def _ramp(palette: list[Any], low: float, high: float, fallback: Any) -> Callable[[Any], Any]:
    def of(item: Any) -> Any:
        if item is None or not np.isfinite(item):
            return fallback
        share = (float(item) - low) / (high - low) if high > low else 0.0
        return palette[min(len(palette) - 1, max(0, int(share * len(palette))))]

    return of


def _plain(item: Any) -> Any:
    return item.item() if isinstance(item, np.generic) else item


def _plain_list(column: Any, count: int) -> list[Any]:
    made = column.tolist() if isinstance(column, np.ndarray) else [_plain(item) for item in column]
    return made if len(made) == count else [*made, *([None] * (count - len(made)))]
