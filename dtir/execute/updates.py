"""Collectives that write parts of what they send into an operand: ragged-all-to-all, and permutes of slices in place.

Both have the arrays that they write into as operands, and offsets that the program computes.

Source: openxla.org/xla/operation_semantics (RaggedAllToAll); of the permute the operand forms of XLA's HLO verifier.

>>> import numpy as np
>>> from dtir.execute.values import Slab
>>> two = lambda *rows: Slab((0, 1), np.asarray(rows))
>>> sent = ragged_all_to_all(
...     np, [two([1, 2], [3, 4]), two([0, 0], [0, 0]), two([0, 1], [0, 1]), two([1, 1], [1, 1]),
...          two([0, 0], [1, 1]), two([1, 1], [1, 1])], (0, 1), [(0, 1)])
>>> sent.array.tolist()
[[1, 3], [2, 4]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dtir.execute.dtypes import Array
from dtir.execute.exchange import Exchange, Group
from dtir.execute.semantics import ExchangeError
from dtir.execute.values import Held, Slab, at, stack

RAGGED_OPERANDS = 6
"""Data, result before it, offsets and sizes of what is sent, offsets where it goes, sizes of what comes."""


def ragged_all_to_all(xp: Any, operands: Sequence[Held], ranks: Sequence[int], groups: Sequence[Group]) -> Slab:
    """Rows of every member go to every other one, as many as the operands say; the other rows of the result stay.

    Piece u of member i for member j: ``sizes[p]`` rows of its data from ``input_offsets[p]`` on, to ``output_offsets[p]`` in
    the result of j, where ``p = j * pieces + u`` and all are those of member i.

    Raises:
        ExchangeError: a piece lies outside, or a member expects another number of rows than comes.
    """
    data, before, starts, sizes, targets, expected = operands
    results: dict[int, Array] = {rank: xp.array(at(before, rank)) for rank in ranks}
    for group in groups:
        wanted = {rank: _numbers(expected, rank) for rank in group}
        for place, source in enumerate(group):
            from_, count, to = _numbers(starts, source), _numbers(sizes, source), _numbers(targets, source)
            if not len(from_) == len(count) == len(to) or len(from_) % len(group):
                raise ExchangeError(
                    f"ragged-all-to-all: {len(from_)} offsets, {len(count)} sizes and {len(to)} target offsets "
                    f"for a group of {len(group)}"
                )
            pieces = len(from_) // len(group)
            rows = at(data, source)
            for other, target in enumerate(group):
                for piece in range(pieces):
                    number = other * pieces + piece
                    arriving = place * pieces + piece
                    size, start, stop = count[number], from_[number], to[number]
                    if arriving < len(wanted[target]) and wanted[target][arriving] != size:
                        raise ExchangeError(
                            f"ragged-all-to-all: rank {source} sends {size} rows to rank {target}, "
                            f"which expects {wanted[target][arriving]}"
                        )
                    result = results[target]
                    if (
                        size < 0
                        or start < 0
                        or stop < 0
                        or start + size > rows.shape[0]
                        or stop + size > result.shape[0]
                    ):
                        raise ExchangeError(
                            f"ragged-all-to-all: rows {start} to {start + size} of {rows.shape[0]} on rank {source} "
                            f"go to rows {stop} to {stop + size} of {result.shape[0]} on rank {target}"
                        )
                    result[stop : stop + size] = rows[start : start + size]
    return cast("Slab", stack(ranks, [results[rank] for rank in ranks], xp))


def permute_in_place(xp: Any, request: Exchange, operands: Sequence[Held], ranks: Sequence[int]) -> tuple[Held, ...]:
    """A slice of every array of the source goes into an array of the destination; other ranks keep theirs as they are.

    Operands are the arrays, the results before it, and the offsets of the slices, dim by dim: first in all arrays, then in
    all results.

    Raises:
        ExchangeError: a slice lies outside, source and destination disagree on where it goes, or the source never arrives.
    """
    count = len(request.slices)
    present = set(ranks)
    offsets = list(operands[2 * count :])
    reads = [_offsets(offsets, held) for held in operands[:count]]
    writes = [_offsets(offsets, held) for held in operands[count : 2 * count]]
    found: list[Held] = []
    for number, shape in enumerate(request.slices):
        source_array, before = operands[number], operands[count + number]
        results: dict[int, Array] = {rank: xp.array(at(before, rank)) for rank in ranks}
        for source, target in request.pairs:
            if target not in present:
                continue
            if source not in present:
                raise ExchangeError(
                    f"rank {target} waits for rank {source}, which never arrives: it took another branch or left the loop"
                )
            start, stop = _place(reads[number], source), _place(writes[number], source)
            if _place(writes[number], target) != stop:
                raise ExchangeError(
                    f"a slice of rank {source} goes to {stop}, rank {target} expects it at {_place(writes[number], target)}"
                )
            part = at(source_array, source)
            for what, begin, extents in (("read", start, part.shape), ("written", stop, results[target].shape)):
                if any(a < 0 or a + b > c for a, b, c in zip(begin, shape, extents, strict=True)):
                    raise ExchangeError(f"a slice of {list(shape)} is {what} at {list(begin)} of {list(extents)}")
            results[target][_cut(stop, shape)] = part[_cut(start, shape)]
        found.append(stack(ranks, [results[rank] for rank in ranks], xp))
    return tuple(found)


def _cut(start: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(begin, begin + size) for begin, size in zip(start, shape, strict=True))


def _offsets(offsets: list[Held], array: Held) -> list[Held]:
    """Take the offsets of one array from the front: one a dim."""
    rank = (array.array.ndim - 1) if isinstance(array, Slab) else array.arrays[0].ndim
    own = offsets[:rank]
    del offsets[:rank]
    return own


def _place(offsets: Sequence[Held], rank: int) -> tuple[int, ...]:
    return tuple(int(at(offset, rank).item()) for offset in offsets)


def _numbers(held: Held, rank: int) -> list[int]:
    return [int(number) for number in at(held, rank).reshape(-1).tolist()]
