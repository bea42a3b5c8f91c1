"""Reading values: type, layout over the mesh, owners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dtir.importers.yaml.document import Entries, Node, Scalar
from dtir.importers.yaml.fields import Fields, as_integer, as_natural, as_naturals, as_word, as_words
from dtir.importers.yaml.origin import read_label, read_lineage, read_uid
from dtir.importers.yaml.problems import Problems, suggestion
from dtir.importers.yaml.ranks import read_ranks
from dtir.importers.yaml.scalars import ScalarError, parse_scalar
from dtir.importers.yaml.sealed import read_data
from dtir.importers.yaml.vocabulary import VALUE_KEYS
from dtir.ir import (
    AxisCoordinate,
    DistributedValue,
    Halo,
    HaloDim,
    LocalShape,
    LogicalMesh,
    Partial,
    RankRange,
    ReductionKind,
    Scale,
    ShardingSpec,
    ShardSizes,
    Symbol,
    TensorType,
    ValueId,
    ValueRole,
    all_ranks,
)
from dtir.ir.expr import Scalar as IRScalar
from dtir.schema.frozen import FrozenDict
from dtir.schema.refinements import ValueConstraint

MOST_LISTED_RANKS = 1_000_000
"""Owners of a confined value that are no arithmetic run are listed up to this number."""

_ROLES = {role.value: role for role in ValueRole}
_OTHER_ROLES = {"grad": "gradient"}


def value_id(program: str, *name: str) -> ValueId:
    """The id of a value of a YAML program; in a region its name stands behind the region's."""
    return ValueId.derive("yaml", program, *name)


def ranks_at(mesh: LogicalMesh, at: Mapping[str, int]) -> tuple[int, ...] | RankRange | None:
    """The ranks at some coordinates of some axes; None when they are too many to list and no arithmetic run."""
    free = [
        (axis.size, stride) for axis, stride in zip(mesh.axes, strides_of(mesh), strict=True) if axis.name not in at
    ]
    first = sum(
        at[axis.name] * stride for axis, stride in zip(mesh.axes, strides_of(mesh), strict=True) if axis.name in at
    )
    count = math.prod(size for size, _ in free)
    if count == mesh.size:
        return all_ranks(mesh.size)
    runs = [(size, stride) for size, stride in free if size > 1]
    merged: list[tuple[int, int]] = []
    for size, stride in reversed(runs):
        if merged and merged[-1][1] * merged[-1][0] == stride:
            merged[-1] = (merged[-1][0] * size, merged[-1][1])
        else:
            merged.append((size, stride))
    if len(merged) == 1 and count > MOST_LISTED_RANKS // 16:
        return RankRange(first, first + merged[0][0] * merged[0][1], merged[0][1])
    if count > MOST_LISTED_RANKS:
        return None
    ranks = [first]
    for size, stride in runs:
        ranks = [rank + step * stride for rank in ranks for step in range(size)]
    return tuple(ranks)


def strides_of(mesh: LogicalMesh) -> tuple[int, ...]:
    """Rank distance of one step along every axis."""
    found: list[int] = []
    stride = 1
    for axis in reversed(mesh.axes):
        found.append(stride)
        stride *= axis.size
    return tuple(reversed(found))


class ValueReader:
    """Reads the values of one program."""

    def __init__(
        self,
        program: str,
        mesh: LogicalMesh,
        symbols: Mapping[str, Symbol],
        problems: Problems,
        prefix: tuple[str, ...] = (),
    ) -> None:
        self.program = program
        self.prefix = prefix
        self.mesh = mesh
        self.symbols = symbols
        self.problems = problems
        self._types: dict[tuple[Any, ...], TensorType] = {}

    def read(self, node: Node, path: tuple[str, ...], role: ValueRole) -> DistributedValue | None:
        """One value; None when something of it cannot be read (which is then among the problems)."""
        before = self.problems.errors()
        if not isinstance(node, Entries):
            self.problems.error(
                "yaml.type", "a value must be a mapping", path, node.line, "write {id: x, shape: [4, 8], ...}"
            )
            return None
        fields = Fields(node, path, self.problems)
        attributes: dict[str, Any] = {key: fields.kept(key, key, VALUE_KEYS) for key in fields.other_keys(VALUE_KEYS)}
        name = fields.text("id", "give the value an id")
        shape = self._shape(fields)
        dtype = fields.text("dtype") or "f32"
        if not ValueConstraint.STABLE_NAME.holds(dtype):
            fields.value("dtype", f"dtype {dtype!r} must be a name such as f32 or bf16")
        if name is None or shape is None:
            return None
        at = self._at(fields)
        sharding = self._sharding(fields, len(shape), at)
        owners = self._owners(fields, at)
        scale = self._scale(fields)
        own_role = self._role(fields, role, attributes)
        grad_of = fields.text("grad_of")
        valid_on = fields.integers("valid_on")
        local_shapes = fields.keyed("local_shapes", as_naturals, "a shape")
        if self.problems.errors() > before or sharding is None or owners is None:
            return None
        return DistributedValue(
            id=read_uid(fields, ValueId) or value_id(self.program, *self.prefix, name),
            type=self._type(shape, dtype, fields),
            role=own_role,
            sharding=sharding,
            owners=owners,
            lineage=read_lineage(fields),
            attributes=FrozenDict(attributes),
            name=read_label(fields, name),
            scale=scale,
            grad_of=value_id(self.program, *self.prefix, grad_of) if grad_of else None,
            source_value=read_uid(fields, ValueId, "source_value"),
            valid_on=tuple(valid_on) if valid_on is not None else None,
            local_shapes=tuple(LocalShape(rank, tuple(item)) for rank, item in sorted((local_shapes or {}).items())),
        )

    def _type(self, shape: tuple[IRScalar, ...], dtype: str, fields: Fields) -> TensorType:
        given = fields.integers("layout")
        layout = tuple(given) if given is not None else None
        if layout is not None and sorted(layout) != list(range(len(shape))):
            fields.value("layout", f"layout {list(layout)} is no permutation of the {len(shape)} dims")
            layout = None
        if fields.has("type_attributes"):
            return TensorType(shape, dtype, layout, FrozenDict(read_data(fields, "type_attributes")))
        return self._types.setdefault((shape, dtype, layout), TensorType(shape, dtype, layout))

    def _shape(self, fields: Fields) -> tuple[IRScalar, ...] | None:
        if not fields.has("shape"):
            fields.missing("shape", "a shape is a list of extents, [] for a scalar")
            return None
        found = fields.each("shape", self._extent, "an extent: a whole number of at least 0, a symbol or an expression")
        return tuple(found) if found is not None else None

    def _extent(self, node: Node) -> IRScalar | None:
        if not isinstance(node, Scalar):
            return None
        number = as_integer(node)
        if number is not None:
            return number if number >= 0 else None
        if isinstance(node.value, float):
            return node.value if node.value > 0 else None
        if not isinstance(node.value, str):
            return None
        try:
            return parse_scalar(node.text, self.symbols)
        except (ScalarError, TypeError):
            return None

    # -- layout -----------------------------------------------------------------------------------------------------

    def _at(self, fields: Fields) -> dict[str, int]:
        found: dict[str, int] = {}
        for axis, node in (fields.entries("at") or {}).items():
            coordinate = as_natural(node)
            if axis not in self.mesh.axis_names:
                fields.value(
                    "at",
                    f"the mesh has no axis {axis!r}",
                    suggestion(axis, self.mesh.axis_names),
                    "sharding.unknown_axis",
                )
            elif coordinate is None or coordinate >= self.mesh.axis_size(axis):
                size = self.mesh.axis_size(axis)
                fields.value("at", f"coordinate of axis {axis} must be a whole number from 0 to {size - 1}")
            else:
                found[axis] = coordinate
        return found

    def _sharding(self, fields: Fields, rank: int, at: Mapping[str, int]) -> ShardingSpec | None:
        dims = fields.each("dims", as_words, "a list of axes")
        if dims is None:
            if fields.has("dims"):
                return None
            dims = [list[str]() for _ in range(rank)]
        varying = fields.words("varying") or []
        partial = self._partial(fields)
        sizes = fields.keyed("sizes", as_naturals, "a list of shard sizes") or {}
        halo = self._halo(fields)
        if any(not item for item in sizes.values()):
            fields.value("sizes", "a list of shard sizes is empty", "give one size a shard")
            return None
        used = {axis for axes in dims for axis in axes} | set(varying) | set(at) | set(partial.axes if partial else ())
        replicated = fields.words("replicated")
        if replicated is None:
            replicated = [axis for axis in self.mesh.axis_names if axis not in used]
        return ShardingSpec(
            tuple(tuple(axes) for axes in dims),
            tuple(replicated),
            partial,
            tuple(varying),
            tuple(AxisCoordinate(axis, coordinate) for axis, coordinate in at.items()),
            tuple(ShardSizes(dim, tuple(items)) for dim, items in sorted(sizes.items())),
            halo,
        )

    def _partial(self, fields: Fields) -> Partial | None:
        entries = fields.entries("partial")
        if not entries:
            return None
        kinds: list[ReductionKind] = []
        known = [kind.value for kind in ReductionKind]
        for axis, node in entries.items():
            word = as_word(node)
            if word not in known:
                fields.value("partial", f"{axis}: {word!r} is no reduction", suggestion(word or "", known))
                return None
            kinds.append(ReductionKind(word))
        return Partial(tuple(entries), kinds[0])

    def _halo(self, fields: Fields) -> Halo | None:
        widths = fields.keyed("halo", _width, "a width, or a list of widths before and after")
        corners = fields.truth("corners")
        if not widths:
            if corners is not None:
                fields.value("corners", "corners without a halo", "give the widths: halo: {0: 1}")
            return None
        return Halo(
            tuple(HaloDim(dim, before, after) for dim, (before, after) in sorted(widths.items())),
            True if corners is None else corners,
        )

    def _owners(self, fields: Fields, at: Mapping[str, int]) -> tuple[int, ...] | RankRange | None:
        if fields.has("owners"):
            return read_ranks(fields, "owners")
        ranks = ranks_at(self.mesh, at)
        if ranks is None:
            fields.value("at", f"the owners are more than {MOST_LISTED_RANKS} and no arithmetic run of ranks",
                         "order the mesh axes so that the confined ones come first or last", "yaml.limit")  # fmt: skip
        return ranks

    def _scale(self, fields: Fields) -> Scale:
        factor = fields.fraction("scale")
        if factor is None:
            return Scale()
        if factor <= 0:
            fields.value("scale", f"scale must be positive, got {factor}")
            return Scale()
        return Scale(factor.numerator, factor.denominator)

    def _role(self, fields: Fields, default: ValueRole, attributes: dict[str, Any]) -> ValueRole:
        """The role; what has no field of its own goes to the attributes."""
        attributes.update(read_data(fields, "attributes"))
        if (note := fields.text("note")) is not None:
            attributes["note"] = note
        words = {axis: as_word(node) for axis, node in (fields.entries("partial") or {}).items()}
        if len(set(words.values())) > 1:
            # The IR has one pending operator a value; a document with several is judged, not refused.
            attributes["partial"] = words
        word = fields.text("role")
        if word is None:
            return default
        if word not in _ROLES:
            attributes["role"] = _OTHER_ROLES.get(word, word)
        return _ROLES.get(word, default)


def _width(node: Node) -> tuple[int, int] | None:
    one = as_natural(node)
    if one is not None:
        return one, one
    both = as_naturals(node)
    return (both[0], both[1]) if both is not None and len(both) == 2 else None
