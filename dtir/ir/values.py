"""Distributed values: a tensor, its layout over the mesh and the ranks that hold it."""

from __future__ import annotations

from enum import Enum
from typing import Any

from dtir.ir.ids import Lineage, ValueId
from dtir.ir.ranks import RankRange
from dtir.ir.sharding import ShardingSpec
from dtir.ir.types import TensorType
from dtir.schema.authoring import enum, extension, record
from dtir.schema.frozen import EMPTY_MAP, FrozenDict
from dtir.schema.refinements import NonNegativeInt, PositiveInt


@enum("blueprinting.ir.model.value-role")
class ValueRole(Enum):
    """What a value is for."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    ACTIVATION = "activation"
    OUTPUT = "output"
    STATE = "state"
    KV_CACHE = "kv_cache"
    OPTIMIZER_STATE = "optimizer_state"


@record("dtir.ir.scale")
class Scale:
    """A rational factor: the value is ``numerator / denominator`` times its specification."""

    numerator: PositiveInt = 1
    denominator: PositiveInt = 1


UNSCALED = Scale()


@record("dtir.ir.local-shape")
class LocalShape:
    """The shape that one rank really holds, where ranks differ."""

    rank: NonNegativeInt
    shape: tuple[NonNegativeInt, ...]


@record("blueprinting.ir.distributed-task.value")
class DistributedValue:
    """One value of a program.

    **Shapes**: `type.shape` is global, except along `sharding.varying` axes, where it is what one rank holds. `owners`
    are the ranks that hold a part. The fields from `name` on are dtir's own: a name for people, the declared `scale`,
    the value whose gradient this is, the ranks whose copy is current (None: all), and shapes of single ranks.
    """

    id: ValueId
    type: TensorType
    role: ValueRole
    sharding: ShardingSpec
    owners: tuple[NonNegativeInt, ...] | RankRange
    lineage: Lineage
    source_value: ValueId | None = None
    attributes: FrozenDict[Any] = EMPTY_MAP
    name: str = extension(default="")
    scale: Scale = extension(default=UNSCALED)
    grad_of: ValueId | None = extension(default=None)
    valid_on: tuple[NonNegativeInt, ...] | None = extension(default=None)
    local_shapes: tuple[LocalShape, ...] = extension(default=())
