"""Rows of the three kinds of tables, and the mesh that they speak of.

| table | an entry |
|---|---|
| named | name: {mesh: {axis_names, shape}, partition_spec, shape} |
| logical | name: {partition_spec of logical axes, shape} |
| activations | a list of {"name: dtype[shape]": {logic_axes, PartitionSpec as text}} under a heading |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dtir.importers.rank_set.plain import count_of, mapping, sequence, shape_of, text_of
from dtir.importers.rank_set.words import dtype_name
from dtir.importers.sharding_table.specs import Spec, spec_of_json, spec_of_text
from dtir.ir.values import ValueRole

NAMED, LOGICAL, ACTIVATIONS = "named", "logical", "activations"

_TYPED = re.compile(r"(?P<name>.*?):\s*(?P<dtype>[A-Za-z_]\w*)\[(?P<shape>[\d,\s]*)\]\s*", re.DOTALL)
_PATH = re.compile(r"\['?([^'\]]*)'?\]")


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor: its name, global shape, element type (None: the table has none), layout, role, and axes by logical name."""

    name: str
    shape: tuple[int, ...]
    dtype: str | None
    spec: Spec
    role: ValueRole
    logical: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its kind, rows, the mesh axes with their sizes (None: the table does not say), and what was left out."""

    kind: str
    rows: tuple[Row, ...]
    axes: Mapping[str, int | None]
    malformed: tuple[str, ...]
    other_meshes: int = 0


def read_table(whole: Mapping[str, Any]) -> Table:
    """The rows of a table of any kind."""
    entries = list(_entries(whole))
    rows: list[Row] = []
    malformed: list[str] = []
    axes: dict[str, int | None] = {}
    kind = LOGICAL
    others = 0
    for name, entry, activation in entries:
        row = _activation(name, entry) if activation else _named(name, entry)
        if row is None:
            malformed.append(name)
            continue
        rows.append(row)
        mesh = _mesh(mapping(entry.get("mesh")))
        if activation:
            kind = ACTIVATIONS
        elif mesh:
            kind = NAMED
            others += bool(axes) and mesh != axes
            axes = axes or dict(mesh)
    for row in rows:
        for axis in (axis for dim in row.spec for axis in dim):
            axes.setdefault(axis, None)
    return Table(kind, tuple(rows), axes, tuple(malformed), others)


def _entries(whole: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    for name, value in whole.items():
        if isinstance(value, list):
            for item in sequence(whole[name]):
                for inner, entry in mapping(item).items():
                    yield inner, mapping(entry), True
        else:
            yield name, mapping(value), False


def _mesh(value: Mapping[str, Any]) -> dict[str, int | None]:
    sizes = mapping(value.get("shape"))
    names = [text_of(item) for item in sequence(value.get("axis_names"))] or list(sizes)
    found = {name: count_of(sizes.get(name)) for name in names if name}
    return {name: size or None for name, size in found.items()}


def _named(name: str, entry: Mapping[str, Any]) -> Row | None:
    spec, shape = spec_of_json(entry.get("partition_spec")), shape_of(entry.get("shape"))
    if spec is None or shape is None or len(spec) > len(shape):
        return None
    return Row(name, shape, None, _padded(spec, len(shape)), _role(name))


def _activation(name: str, entry: Mapping[str, Any]) -> Row | None:
    typed = _TYPED.fullmatch(name)
    spec = spec_of_text(text_of(entry.get("PartitionSpec")))
    if typed is None or spec is None:
        return None
    words = [item.strip() for item in typed["shape"].split(",") if item.strip()]
    shape = tuple(int(item) for item in words if item.isdecimal() and len(item) < 19)
    if len(shape) != len(words) or len(spec) > len(shape):
        return None
    dtype = dtype_name(typed["dtype"])
    logical = text_of(entry.get("logic_axes"))
    return Row(typed["name"], shape, dtype, _padded(spec, len(shape)), ValueRole.ACTIVATION, logical)


def _padded(spec: Spec, rank: int) -> Spec:
    """A spec with an entry for every dim: those that are not named are not split."""
    return (*spec, *((),) * (rank - len(spec)))


def _role(name: str) -> ValueRole:
    if name.startswith(".opt_state"):
        return ValueRole.OPTIMIZER_STATE
    return ValueRole.PARAMETER if "params" in name else ValueRole.STATE


def short_name(name: str) -> str:
    """A tensor's path without the brackets of its printer: ``.params/['a']/['b']`` is ``params.a.b``."""
    return ".".join(part for part in re.split(r"[/.]+", _PATH.sub(r"\1", name)) if part) or name
