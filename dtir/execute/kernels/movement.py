"""Launches of collectives that move and do not reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtir.execute.kernels.launches import TABLE, Geometry, Launch, integer, numbers, table, unsigned, word_bytes


@dataclass(frozen=True, slots=True)
class Box:
    """A block as lines of bytes that lie one behind the other; strides in bytes.

    Args:
        outer: number of groups of lines.
        middle: lines of a group.
        row_bytes: bytes of a line.
        source: strides from group to group and from line to line, where it is read.
        target: the same where it is written.
    """

    outer: int
    middle: int
    row_bytes: int
    source: tuple[int, int]
    target: tuple[int, int]

    @property
    def bytes(self) -> int:
        """Bytes of the block."""
        return self.outer * self.middle * self.row_bytes

    def reach(self, strides: tuple[int, int]) -> int:
        """Bytes from the first of the block to behind its last, under one of the two pairs of strides."""
        return (self.outer - 1) * strides[0] + (self.middle - 1) * strides[1] + self.row_bytes


def blocks(
    sources: Sequence[int],
    targets: Sequence[int],
    box: Box,
    source_step: int,
    target_step: int,
    geometry: Geometry,
) -> list[Launch]:
    """A block from every source to every target.

    Block (s, t) is read at ``sources[s] + t * source_step`` and written at ``targets[t] + s * target_step``.
    """
    word = word_bytes(*sources, *targets, box.row_bytes, *box.source, *box.target, source_step, target_step)
    words = box.bytes // word
    lanes = numbers(box.outer, box.middle, box.row_bytes // word, *box.source, *box.target)
    found: list[Launch] = []
    for first in range(0, len(sources), TABLE):
        some = sources[first : first + TABLE]
        for start in range(0, len(targets), TABLE):
            others = targets[start : start + TABLE]
            here = [address + start * source_step for address in some]
            there = [address + first * target_step for address in others]
            # Blocks of a launch share the device: each gets its part of the grid.
            share = Geometry(max(1, geometry.blocks // (len(some) * len(others))), geometry.threads)
            found.append(
                Launch(
                    f"copy_blocks<{word}>",
                    (share.grid_x(words), len(some), len(others)),
                    geometry.threads,
                    (table(here), table(there), lanes, unsigned(source_step), unsigned(target_step)),
                    tuple((a, (len(others) - 1) * source_step + box.reach(box.source)) for a in here),
                    tuple((a, (len(some) - 1) * target_step + box.reach(box.target)) for a in there),
                )
            )
    return found


def pairs(sources: Sequence[int], targets: Sequence[int], size_bytes: int, geometry: Geometry) -> list[Launch]:
    """So many bytes from every source to the target at its place."""
    word = word_bytes(*sources, *targets, size_bytes)
    found: list[Launch] = []
    for first in range(0, len(sources), TABLE):
        some, others = sources[first : first + TABLE], targets[first : first + TABLE]
        share = Geometry(max(1, geometry.blocks // len(some)), geometry.threads)
        found.append(
            Launch(
                f"copy_pairs<{word}>",
                (share.grid_x(size_bytes // word), len(some), 1),
                geometry.threads,
                (table(some), table(others), unsigned(size_bytes // word)),
                tuple((address, size_bytes) for address in some),
                tuple((address, size_bytes) for address in others),
            )
        )
    return found


def replicate(source: int, targets: Sequence[int], size_bytes: int, geometry: Geometry) -> list[Launch]:
    """So many bytes to every target; they are read once a launch."""
    word = word_bytes(source, *targets, size_bytes)
    found: list[Launch] = []
    for first in range(0, len(targets), TABLE):
        some = targets[first : first + TABLE]
        found.append(
            Launch(
                f"replicate<{word}>",
                (geometry.grid_x(size_bytes // word), 1, 1),
                geometry.threads,
                (unsigned(source), table(some), integer(len(some)), unsigned(size_bytes // word)),
                ((source, size_bytes),),
                tuple((address, size_bytes) for address in some),
            )
        )
    return found
