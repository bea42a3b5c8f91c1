"""What a task's attributes say: every fact of an instruction as plain data, under `hlo.<attribute>`.

| HLO | attribute |
|---|---|
| `dimensions={0,1}`, `dynamic_slice_sizes={2,3}`, ... | tuple of ints |
| `channel_id=1`, `iota_dimension=0`, ... | int |
| `direction=LT`, `kind=kLoop`, `custom_call_target="f"`, ... | text |
| `slice={[0:4:2]}` | map of `starts`, `limits`, `strides` |
| `padding=1_2_0` | map of `low`, `high`, `interior` |
| `window={size=3 pad=1_1}` | map of `size`, `stride`, `low`, `high`, `lhs_dilation`, `rhs_dilation`, `reversed` |
| `to_apply=%add` of a reduction, `select=`, `scatter=` | name of the region |
| `replica_groups=...` | the text; the collective itself holds the groups |
| `frontend_attributes={a="x"}` | tuple of (key, text) pairs |
| a constant's values | `hlo.literal`, see `literal_facts` |
| `constant({...})` | `hlo.elided`: the printer left the values out |
| anything else | the text |

`op_name` and `source` (`file:line`) stand without prefix. Other metadata (end positions, scheduling names) is not kept.
"""

from __future__ import annotations

from typing import Any

from dtir.importers.hlo.attributes import AttributeValue, Frontend, IdLists, Names, Padding, Pairs, Raw, Slices, Window
from dtir.importers.hlo.groups import ExplicitGroups, IotaGroups, MeshGroups
from dtir.importers.hlo.literals import is_elided, parse_literal
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.hlo.shardings import Maximal, Named, Tiled, TupleSharding, Uniform
from dtir.importers.hlo.source import origin
from dtir.importers.hlo.syntax import Instruction, SourceTables
from dtir.schema.frozen import FrozenDict


def fact(name: str) -> str:
    """The key of an HLO fact among the attributes of a task, value, type, region or program: `hlo.<name>`."""
    return f"hlo.{name}"


_ATOMS = (bool, int, float, str, tuple)
_ELSEWHERE = frozenset({"metadata", "control-predecessors", "sharding", "source_target_pairs"})
"""Attributes that are said by other fields: origin, dependencies, layouts of values, pairs of the collective."""


class Facts:
    """Attributes of tasks; equal attribute values of a module are converted once."""

    def __init__(self, tables: SourceTables) -> None:
        self._tables = tables
        self._converted: dict[int, Any] = {}
        self._repeated: dict[tuple[Any, ...], FrozenDict[Any]] = {}

    def of(self, instruction: Instruction, entered: frozenset[str], **more: Any) -> FrozenDict[Any]:
        """Attributes of a task. `entered` names attributes whose computations the task's body enters."""
        attributes = instruction.attributes
        repeats = not more and instruction.literal is None and "metadata" not in attributes
        # The module keeps its values alive, so that an id names one of them for good.
        key = (entered, *attributes, *map(id, attributes.values()))
        if repeats and (known := self._repeated.get(key)) is not None:
            return known
        facts = FrozenDict(self._collect(instruction, entered, more))
        if repeats:
            self._repeated[key] = facts
        return facts

    def _collect(self, instruction: Instruction, entered: frozenset[str], more: dict[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {key.replace("__", "."): value for key, value in more.items()}
        for key, value in instruction.attributes.items():
            if key in _ELSEWHERE or key in entered:
                continue
            if isinstance(value, _ATOMS):
                facts[fact(key)] = value
                continue
            converted = self._converted.get(id(value))
            if converted is None:
                converted = self._converted[id(value)] = plain(value)
            facts[fact(key)] = converted
        where = origin(instruction, self._tables)
        if where.op_name:
            facts["op_name"] = where.op_name
        if where.source:
            facts["source"] = where.source
        if instruction.literal is not None:
            facts.update(literal_facts(instruction))
        return facts


def plain(value: AttributeValue) -> Any:
    """One attribute value as plain data."""
    match value:
        case bool() | int() | float() | str() | tuple():
            return value
        case Raw(text=text):
            return text
        case Names(names=names):
            return names[0] if len(names) == 1 else names
        case Slices(starts=starts, limits=limits, strides=strides):
            return FrozenDict({"starts": starts, "limits": limits, "strides": strides})
        case Padding(low=low, high=high, interior=interior):
            return FrozenDict({"low": low, "high": high, "interior": interior})
        case Window():
            return FrozenDict(
                {
                    "size": value.size,
                    "stride": value.stride,
                    "low": tuple(low for low, _ in value.pad),
                    "high": tuple(high for _, high in value.pad),
                    "lhs_dilation": value.lhs_dilate,
                    "rhs_dilation": value.rhs_dilate,
                    "reversed": value.reversed,
                }
            )
        case Pairs(pairs=pairs):
            return pairs
        case IdLists(lists=lists):
            return lists
        case Frontend(entries=entries):
            return entries  # pairs: a map would have keys that the IR reserves
        case ExplicitGroups() | IotaGroups() | MeshGroups():
            return value.text
        case Uniform() | Maximal() | Tiled() | Named() | TupleSharding():
            return value.text


def literal_facts(instruction: Instruction) -> dict[str, Any]:
    """The values of a constant, however many there are: the text holds them all.

    `hlo.literal` is a row-major tuple of bool, int or float by the element type; complex values are pairs; infinities and
    NaN are text, which is all that a snapshot can hold of them. One value stands for all elements of a uniform constant.
    """
    text = instruction.literal or ""
    if is_elided(text):
        return {fact("elided"): True}
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        return {fact("literal_text"): text}
    return {fact("literal"): tuple(_number(value, shape.dtype) for value in parse_literal(text, shape.elements))}


def _number(text: str, dtype: str) -> bool | int | float | str | tuple[float | str, ...]:
    if text.startswith("("):
        return tuple(_real(part.strip()) for part in text[1:-1].split(","))
    if dtype == "pred":
        return text == "true" or text not in ("false", "0")
    if dtype[0] in "su" and text.lstrip("+-").isdigit():
        return int(text)
    value = _real(text)
    return (value, 0.0) if dtype in ("c64", "c128") else value


def _real(text: str) -> float | str:
    """A finite number; infinities and NaN as text."""
    if text in ("true", "false"):
        return float(text == "true")
    if "inf" in text or "nan" in text:
        return text.lstrip("+")
    value = float(text)
    return value if value - value == 0 else ("-inf" if value < 0 else "inf")
