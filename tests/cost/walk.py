"""Collective algorithms executed message by message, as the ground truth of their formulas.

Every algorithm works on real data: rank r begins with a vector that nobody else has, and the caller compares what the
ranks hold in the end. `Walk` counts what was sent: rounds, the most that one rank sends (and folds) in each round, and the
bytes of all messages together. Elements count as one byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.int64]


@dataclass
class Walk:
    """Counts of an execution."""

    steps: int = 0
    wire: int = 0
    reduced: int = 0
    total: int = 0
    _sent: dict[int, int] = field(default_factory=dict)
    _folded: dict[int, int] = field(default_factory=dict)

    def send(self, source: int, destination: int, data: Vector) -> Vector:
        assert source != destination
        self._sent[source] = self._sent.get(source, 0) + data.size
        self.total += data.size
        return data.copy()

    def fold(self, rank: int, into: Vector, data: Vector) -> None:
        self._folded[rank] = self._folded.get(rank, 0) + data.size
        into += data

    def end_round(self) -> None:
        self.steps += 1
        self.wire += max(self._sent.values())
        self.reduced += max(self._folded.values(), default=0)
        self._sent, self._folded = {}, {}


def vectors(p: int, n: int) -> list[Vector]:
    """One vector a rank, no two elements alike in a way that could hide a swap."""
    return [np.arange(n, dtype=np.int64) * 1009 + (rank + 1) * 10**6 for rank in range(p)]


def _blocks(data: Vector, p: int) -> list[Vector]:
    return list(data.reshape(p, -1))


def ring_reduce_scatter(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    held = [_blocks(item, p) for item in data]
    for step in range(p - 1):
        moved = [walk.send(rank, (rank + 1) % p, held[rank][(rank - step - 1) % p]) for rank in range(p)]
        for rank in range(p):
            block = (rank - step - 2) % p
            walk.fold(rank, held[rank][block], moved[(rank - 1) % p])
        walk.end_round()
    return [held[rank][rank] for rank in range(p)]


def pairwise_reduce_scatter(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    result = [_blocks(item, p)[rank].copy() for rank, item in enumerate(data)]
    for step in range(1, p):
        for rank in range(p):
            target = (rank + step) % p
            walk.fold(target, result[target], walk.send(rank, target, _blocks(data[rank], p)[target]))
        walk.end_round()
    return result


def ring_all_gather(p: int, shards: list[Vector], walk: Walk) -> list[Vector]:
    held: list[dict[int, Vector]] = [{rank: shard} for rank, shard in enumerate(shards)]
    for step in range(p - 1):
        moved = [walk.send(rank, (rank + 1) % p, held[rank][(rank - step) % p]) for rank in range(p)]
        for rank in range(p):
            held[rank][(rank - 1 - step) % p] = moved[(rank - 1) % p]
        walk.end_round()
    return [np.concatenate([mine[place] for place in range(p)]) for mine in held]


def ring_all_reduce(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    return ring_all_gather(p, ring_reduce_scatter(p, data, walk), walk)


def recursive_doubling_all_gather(p: int, shards: list[Vector], walk: Walk) -> list[Vector]:
    held: list[dict[int, Vector]] = [{rank: shard} for rank, shard in enumerate(shards)]
    distance = 1
    while distance < p:
        before = [dict(mine) for mine in held]
        for rank in range(p):
            partner = rank ^ distance
            places = sorted(before[rank])
            walk.send(rank, partner, np.concatenate([before[rank][place] for place in places]))
            held[partner].update(before[rank])
        walk.end_round()
        distance *= 2
    return [np.concatenate([mine[place] for place in range(p)]) for mine in held]


def bruck_all_gather(p: int, shards: list[Vector], walk: Walk) -> list[Vector]:
    # held[r][i] is the block of rank r + i.
    held = [[shard] for shard in shards]
    while len(held[0]) < p:
        have = len(held[0])
        count = min(have, p - have)
        before = [list(mine) for mine in held]
        for rank in range(p):
            source = (rank + have) % p
            walk.send(source, rank, np.concatenate(before[source][:count]))
            held[rank] += before[source][:count]
        walk.end_round()
    return [np.concatenate([mine[(place - rank) % p] for place in range(p)]) for rank, mine in enumerate(held)]


def recursive_doubling_all_reduce(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    held = [item.copy() for item in data]
    whole = 1 << (p.bit_length() - 1)
    rest = p - whole
    _fold_in(held, rest, walk)
    active = [2 * index + 1 if index < rest else index + rest for index in range(whole)]
    distance = 1
    while distance < whole:
        before = [item.copy() for item in held]
        for index, rank in enumerate(active):
            partner = active[index ^ distance]
            walk.fold(partner, held[partner], walk.send(rank, partner, before[rank]))
        walk.end_round()
        distance *= 2
    _hand_out(held, rest, walk)
    return held


def recursive_halving_reduce_scatter(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    held = [item.copy() for item in data]
    spans = [(0, p)] * p
    distance = p // 2
    while distance:
        before = [item.copy() for item in held]
        following = list(spans)
        for rank in range(p):
            first, last = spans[rank]
            middle = (first + last) // 2
            mine, other = (
                ((first, middle), (middle, last)) if not rank & distance else ((middle, last), (first, middle))
            )
            partner = rank ^ distance
            chunk = before[rank].size // p
            place = slice(other[0] * chunk, other[1] * chunk)
            walk.fold(partner, held[partner][place], walk.send(rank, partner, before[rank][place]))
            following[rank] = mine
        spans = following
        walk.end_round()
        distance //= 2
    return [_blocks(held[rank], p)[rank] for rank in range(p)]


def rabenseifner_all_reduce(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    whole = 1 << (p.bit_length() - 1)
    rest = p - whole
    held = [item.copy() for item in data]
    _fold_in(held, rest, walk)
    active = [2 * index + 1 if index < rest else index + rest for index in range(whole)]
    scattered = recursive_halving_reduce_scatter(whole, [held[rank] for rank in active], walk)
    for rank, result in zip(active, recursive_doubling_all_gather(whole, scattered, walk), strict=True):
        held[rank] = result
    _hand_out(held, rest, walk)
    return held


def _fold_in(held: list[Vector], rest: int, walk: Walk) -> None:
    for rank in range(0, 2 * rest, 2):
        walk.fold(rank + 1, held[rank + 1], walk.send(rank, rank + 1, held[rank]))
    if rest:
        walk.end_round()


def _hand_out(held: list[Vector], rest: int, walk: Walk) -> None:
    for rank in range(0, 2 * rest, 2):
        held[rank] = walk.send(rank + 1, rank, held[rank + 1])
    if rest:
        walk.end_round()


def pairwise_all_to_all(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    result = [[np.empty(0, dtype=np.int64)] * p for _ in range(p)]
    for rank in range(p):
        result[rank][rank] = _blocks(data[rank], p)[rank]
    for step in range(1, p):
        for rank in range(p):
            target = (rank + step) % p
            result[target][rank] = walk.send(rank, target, _blocks(data[rank], p)[target])
        walk.end_round()
    return [np.concatenate(row) for row in result]


def bruck_all_to_all(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    # held[r][d] is a block that still has to go the distance d from where its journey began.
    held = [[_blocks(data[rank], p)[(rank + distance) % p] for distance in range(p)] for rank in range(p)]
    bit = 1
    while bit < p:
        moving = [distance for distance in range(p) if distance & bit]
        before = [list(mine) for mine in held]
        for rank in range(p):
            target = (rank + bit) % p
            walk.send(rank, target, np.concatenate([before[rank][distance] for distance in moving]))
            for distance in moving:
                held[target][distance] = before[rank][distance]
        walk.end_round()
        bit *= 2
    return [np.concatenate([held[rank][(rank - source) % p] for source in range(p)]) for rank in range(p)]


def ring_all_to_all(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    """On a bidirectional ring the shorter way round: counts what the busiest direction of a link carries."""
    forward = [0] * p
    backward = [0] * p
    chunk = data[0].size // p
    for source in range(p):
        for target in range(p):
            distance = (target - source) % p
            if distance == 0:
                continue
            # Half of an antipodal block goes either way, hence the doubled counts.
            there = 2 if 2 * distance < p else 1 if 2 * distance == p else 0
            for hop in range(distance if there else 0):
                forward[(source + hop) % p] += there * chunk
            for hop in range((p - distance) if there < 2 else 0):
                backward[(source - hop) % p] += (2 - there) * chunk
    walk.steps = p // 2
    busiest = max(max(forward), max(backward), 0)
    assert busiest % 2 == 0
    walk.wire = busiest // 2
    walk.total = (sum(forward) + sum(backward)) // 2
    return [np.concatenate([_blocks(data[source], p)[rank] for source in range(p)]) for rank in range(p)]


def binomial_broadcast(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    held: list[Vector | None] = [data[0]] + [None] * (p - 1)
    distance = 1
    while distance < p:
        for rank in range(distance):
            if rank + distance < p:
                value = held[rank]
                assert value is not None
                held[rank + distance] = walk.send(rank, rank + distance, value)
        walk.end_round()
        distance *= 2
    assert all(item is not None for item in held)
    return [item for item in held if item is not None]


def scatter_all_gather_broadcast(p: int, data: list[Vector], walk: Walk) -> list[Vector]:
    blocks = _blocks(data[0], p)
    have: list[set[int]] = [set(range(p))] + [set() for _ in range(p - 1)]
    distance = 1 << max(0, (p - 1).bit_length() - 1)
    while distance:
        for rank in range(0, p, 2 * distance):
            moved = {place for place in have[rank] if place >= rank + distance}
            if moved:
                walk.send(rank, rank + distance, np.concatenate([blocks[place] for place in sorted(moved)]))
                have[rank] -= moved
                have[rank + distance] = moved
        if p > 1:
            walk.end_round()
        distance //= 2
    assert all(mine == {rank} for rank, mine in enumerate(have))
    return ring_all_gather(p, [blocks[rank] for rank in range(p)], walk)


Execution = Callable[[int, list[Vector], Walk], list[Vector]]
