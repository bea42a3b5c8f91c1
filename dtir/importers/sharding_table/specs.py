"""Partition specs: as JSON lists, and as the text that JAX prints of one.

>>> spec_of_text("P(('fsdp', 'expert'), None)"), spec_of_json(["tensor", None, ["fsdp", "expert"]])
((('fsdp', 'expert'), ()), (('tensor',), (), ('fsdp', 'expert')))
>>> spec_of_text("P(os.system)") is None
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from dtir.importers.rank_set.plain import MOST_DIMS, sequence

Spec: TypeAlias = tuple[tuple[str, ...], ...]
"""Per dim the axes that split it, major to minor."""

_OUTER = re.compile(r"\s*(?:P|PartitionSpec)\s*\((.*)\)\s*", re.DOTALL)
_ITEM = re.compile(r"\s*(?:None|'(?P<one>[^']*)'|\"(?P<other>[^\"]*)\"|[(\[](?P<many>[^()\[\]]*)[)\]])\s*(?:,|$)")
_NAME = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\")\s*(?:,|$)")


def spec_of_json(value: object) -> Spec | None:
    """A partition spec of a JSON list: null, an axis, or a list of axes a dim; None when it is none."""
    items = sequence(value)
    if not isinstance(value, list) or len(items) > MOST_DIMS:
        return None
    found: list[tuple[str, ...]] = []
    for item in items:
        axes: Sequence[Any] = () if item is None else (item,) if isinstance(item, str) else sequence(item)
        if not (item is None or isinstance(item, (str, list))) or not all(
            isinstance(axis, str) and axis for axis in axes
        ):
            return None
        found.append(tuple(axes))
    return tuple(found)


def spec_of_text(text: str) -> Spec | None:
    """A partition spec as JAX prints it; None for any other text. Nothing of the text is run."""
    outer = _OUTER.fullmatch(text)
    if outer is None:
        return None
    found: list[tuple[str, ...]] = []
    rest = outer[1]
    at = 0
    while at < len(rest) and rest[at:].strip():
        item = _ITEM.match(rest, at)
        if item is None or len(found) >= MOST_DIMS:
            return None
        one = item["one"] or item["other"]
        many = _names(item["many"]) if item["many"] is not None else None
        if item["many"] is not None and many is None:
            return None
        found.append(many if many is not None else (one,) if one else ())
        at = item.end()
    return tuple(found)


def _names(text: str) -> tuple[str, ...] | None:
    """Axes of one dim; None for a text that holds anything else."""
    found: list[str] = []
    at = 0
    while at < len(text) and text[at:].strip():
        name = _NAME.match(text, at)
        if name is None or not (name[1] or name[2]):
            return None
        found.append(name[1] or name[2])
        at = name.end()
    return tuple(found)
