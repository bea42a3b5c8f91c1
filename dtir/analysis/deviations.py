"""Deviations: where what a program declares and what follows from its tasks part, as plain facts.

A deviation names what kind it is, which axes and dims, which operand or result, and what was found and wanted. Wording,
severity and hints belong to the verifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """Kinds of deviations; each has the name of the diagnostic that reports it."""

    UNEVEN = "sharding.uneven"
    DIVISIBILITY = "symbol.divisibility"
    INCOMPLETE = "sharding.incomplete"
    PADDING = "sharding.padding"
    ORDER = "sharding.order"
    MISMATCH = "sharding.mismatch"
    OPERANDS = "sharding.operands"
    RESHAPE = "sharding.reshape"
    LOCAL_INDEX = "sharding.local_index"
    CORRELATED_RANDOM = "sharding.correlated_random"
    REPLICA_DIVERGENCE = "ownership.replica_divergence"
    ABSENT = "ownership.absent"
    DROPPED = "partial.dropped"
    FABRICATED = "partial.fabricated"
    NONLINEAR = "partial.nonlinear"
    PRODUCT = "partial.product"
    ADD_REPLICATED = "partial.add_replicated"
    REDUCTION_COMMUTE = "partial.reduction_commute"
    MIXED_OPS = "partial.mixed_ops"
    OUTPUT = "partial.output"
    UNEVEN_MEAN = "partial.uneven_mean"
    GROUP_SPLIT = "collective.group_split"
    INCOMPLETE_AXES = "collective.incomplete_axes"
    REDUCE_REPLICATED = "collective.reduce_replicated"
    REDUCE_SHARDED = "collective.reduce_sharded"
    REDUCE_VARYING = "collective.reduce_varying"
    WRONG_REDUCTION = "collective.wrong_reduction"
    GATHER_DIM = "collective.gather_dim"
    GATHER_PARTIAL = "collective.gather_partial"
    SCATTER_DIM = "collective.scatter_dim"
    ALL_TO_ALL_DIMS = "collective.all_to_all_dims"
    ROOT = "collective.root"
    STALE_ROOT = "collective.stale_root"
    BROADCAST_SHARDED = "collective.broadcast_sharded"
    SHAPE_MISMATCH = "collective.shape_mismatch"
    DTYPE = "collective.dtype"
    AMBIGUOUS = "symbol.ambiguous"
    SCALE_FACTOR = "scale.factor"
    SCALE_MIXED = "scale.mixed"
    TOKEN_WEIGHT = "scale.token_weight"
    RESHARD_PARTIAL = "reshard.partial"
    HALO_THIN = "halo.thin"
    HALO_CORNER = "halo.corner"
    HALO_STALE = "halo.stale"
    NARROW_SHARD = "halo.narrow_shard"
    DOUBLE_COUNT = "halo.double_count"
    REDUNDANT = "redundant.collective"
    UNKNOWN_OP = "verify.unknown_op"
    BAD_CALL = "verify.op_call"


@dataclass(frozen=True, slots=True)
class Deviation:
    """One deviation of one task or value.

    Args:
        kind: what it is.
        axes: mesh axes (factors of the space) it concerns, in mesh order where that matters.
        operand: position among the task's operands.
        result: position among the task's outputs.
        dims: tensor dims it concerns.
        found: what follows from the tasks, or what is there, in words and numbers.
        wanted: what was declared, or what would be right.
        note: which of several forms of the deviation it is, for wording.
    """

    kind: Kind
    axes: tuple[str, ...] = ()
    operand: int | None = None
    result: int | None = None
    dims: tuple[int, ...] = ()
    found: str = ""
    wanted: str = ""
    note: str = ""
