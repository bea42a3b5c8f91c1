"""Communication steps as back ends see them: groups are ordered member lists, transfers are blocks.

A back end gets an `Exchange` or `Moves` and the operand of its ranks, and gives the results; nothing else crosses ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dtir.execute.placement import Box
from dtir.ir.collectives import CollectiveKind
from dtir.ir.ids import RegionId
from dtir.ir.reductions import ReductionKind

Group: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective.

    Args:
        kind: what it does.
        groups: ordered member lists; of a permute empty.
        numbers: the number of every group among the distinct groups of the plan, the same on every process.
        reduction: of all_reduce and reduce_scatter.
        computation: the region of a custom reduction.
        dim: of all_gather and reduce_scatter.
        split, concat: of all_to_all; both None: operand j of a rank goes to member j (the tuple form of HLO).
        sizes: shard sizes along the scattered dim by member position, where they differ; one tuple a group.
        roots: of a broadcast, the position of the root in every group.
        pairs: of a permute, (source, destination); who is no destination gets zeros.
        trim: extent to which a gathered dim is cut: members that hold less than others pad their arrays, and what is padded
            at the end is left out.
        vector: whether a gather takes members of different sizes as they are; otherwise all send as much as the largest.
        ragged: of an all_to_all whose sizes and offsets are operands (`dtir.execute.updates`).
        slices: of a permute in place the size of the slice of every array; its offsets are operands.
    """

    kind: CollectiveKind
    groups: tuple[Group, ...]
    numbers: tuple[int, ...] = ()
    reduction: ReductionKind | None = None
    computation: RegionId | None = None
    dim: int | None = None
    split: int | None = None
    concat: int | None = None
    sizes: tuple[tuple[int, ...], ...] | None = None
    roots: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    trim: int | None = None
    vector: bool = False
    ragged: bool = False
    slices: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """A block that goes from one rank to another (or stays); boxes are index ranges of what the ranks hold."""

    source: int
    destination: int
    source_box: Box
    destination_box: Box


@dataclass(frozen=True, slots=True)
class Moves:
    """Point-to-point transfers, reshards and halo exchanges: the results start as zeros and are filled block by block.

    Args:
        moves: the blocks.
        shapes: what every destination rank holds in the end.
    """

    moves: tuple[Move, ...]
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
