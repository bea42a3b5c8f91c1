"""Which ranks do the same: classes whose timelines are equal, so that a thousand ranks cost what one does.

Ranks begin as one class and are told apart by what tells them apart: tasks that only some run, values they hold more or
less of, orders they issue in, groups whose price or whose members differ. The last is repeated until nothing changes
(colour refinement): then two ranks of one class meet the same classes at the same price in every collective, and by
induction over time they do the same at the same moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import AxisFibres, Groups
from dtir.cost.spread import MOST_RANKS, Ints, TooMany, rank_array
from dtir.ir.ranks import RankRange

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Who meets whom, at which price: one for all tasks that are alike in this.

    Args:
        members: ranks of all groups, one group after the other.
        starts: where each group begins in `members`.
        price: number of every group's price.
    """

    members: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    price: Ints = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Transfers, at which price.

    Args:
        source, destination: ranks, one pair an entry.
        price: number of every pair's price.
    """

    source: Ints = field(repr=False)
    destination: Ints = field(repr=False)
    price: Ints = field(repr=False)


def pattern_of(groups: Groups, price: Ints | None) -> Pattern:
    """Groups as flat arrays.

    Raises:
        TooMany: more members than are looked at one by one.
    """
    if isinstance(groups, AxisFibres):
        members = _fibre_members(groups)
        starts = np.arange(len(groups), dtype=np.int64) * groups.group_size
    else:
        lengths = np.array([len(group) for group in groups], dtype=np.int64)
        if int(lengths.sum()) > MOST_RANKS:
            raise TooMany(f"{int(lengths.sum())} members")
        members = np.concatenate([rank_array(group) for group in groups]) if len(groups) else lengths
        starts = np.cumsum(lengths) - lengths
    return Pattern(members, starts, np.zeros(len(starts), dtype=np.int64) if price is None else price)


def _fibre_members(groups: AxisFibres) -> Ints:
    if len(groups) * groups.group_size > MOST_RANKS:
        raise TooMany(f"{len(groups) * groups.group_size} members")
    found = np.zeros(1, dtype=np.int64)
    sizes = (*groups.other_sizes, *groups.sizes)
    for size, stride in zip(sizes, (*groups.other_strides, *groups.strides), strict=True):
        found = (found[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return found


class RankClasses:
    """Classes of the ranks of a mesh, in the making.

    Args:
        ranks: ranks of the mesh.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._colour: Ints | None = None
        self._hashes: Words = np.zeros(0, dtype=np.uint64)

    @property
    def count(self) -> int:
        """Number of classes."""
        return 1 if self._colour is None else int(self._colour.max()) + 1

    def of(self, rank: int) -> int:
        """The class of a rank."""
        return 0 if self._colour is None else int(self._colour[rank])

    def of_ranks(self, ranks: Sequence[int]) -> tuple[int, ...]:
        """The classes among some ranks, ascending."""
        if self._colour is None:
            return (0,) if len(ranks) else ()
        if len(ranks) == self.ranks:
            return tuple(range(self.count))
        return tuple(np.unique(self._colour[rank_array(ranks)]).tolist())

    def colours(self, ranks: Ints) -> Ints:
        """The class of every rank of an array."""
        return np.zeros(len(ranks), dtype=np.int64) if self._colour is None else self._colour[ranks]

    def first_ranks(self) -> list[int]:
        """The first rank of every class."""
        if self._colour is None:
            return [0]
        return np.unique(self._colour, return_index=True)[1].tolist()

    def sizes(self) -> list[int]:
        """Ranks of every class."""
        return [self.ranks] if self._colour is None else np.bincount(self._colour).tolist()

    def ranks_of(self, number: int) -> Sequence[int]:
        """The ranks of a class."""
        if self._colour is None:
            return RankRange(0, self.ranks)
        return np.flatnonzero(self._colour == number).tolist()

    # -- telling apart --------------------------------------------------------------------------------------------------

    def split(self, labels: Ints) -> None:
        """Tell ranks with different labels apart.

        Shapes: labels ``[ranks]``.
        """
        if len(labels) and np.all(labels == labels[0]):
            return
        if self._colour is None:
            self._colour = np.unique(labels, return_inverse=True)[1].astype(np.int64)
            return
        pairs = np.stack([self._colour, labels], axis=1)
        self._colour = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def split_off(self, ranks: Sequence[int]) -> None:
        """Tell a set of ranks apart from the others.

        Raises:
            TooMany: the mesh has more ranks than are looked at one by one.
        """
        if len(ranks) in (0, self.ranks):
            return
        labels = self.blank()
        labels[rank_array(ranks)] = 1
        self.split(labels)

    def blank(self) -> Ints:
        """Labels that tell nobody apart.

        Raises:
            TooMany: the mesh has more ranks than are looked at one by one.
        """
        if self.ranks > MOST_RANKS:
            raise TooMany(f"{self.ranks} ranks that do not all do the same")
        return np.zeros(self.ranks, dtype=np.int64)

    def refine(self, patterns: Sequence[Pattern | Pairs]) -> None:
        """Tell ranks apart that meet different classes or pay different prices, until nothing changes."""
        before = 0
        while before != self.count:
            before = self.count
            for pattern in patterns:
                self.split(self._labels(pattern))

    def _labels(self, pattern: Pattern | Pairs) -> Ints:
        labels = np.zeros(self.blank().shape, dtype=np.uint64)
        if isinstance(pattern, Pattern):
            if len(pattern.members) == 0:
                return self.blank()
            lengths = np.diff(np.append(pattern.starts, len(pattern.members)))
            kept = lengths > 0
            mine = self._words(self.colours(pattern.members))
            sums = np.add.reduceat(mine, pattern.starts[kept])
            word = sums * np.uint64(3) + self._words(pattern.price[kept]) + self._words(lengths[kept])
            np.add.at(labels, pattern.members, np.repeat(word, lengths[kept]))
        else:
            source, destination = self.colours(pattern.source), self.colours(pattern.destination)
            price = self._words(pattern.price)
            np.add.at(labels, pattern.source, (self._words(destination) + price) * np.uint64(5))
            np.add.at(labels, pattern.destination, (self._words(source) + price) * np.uint64(7))
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)

    def _words(self, numbers: Ints) -> Words:
        """Random 64-bit words by number, so that sums tell multisets apart."""
        most = int(numbers.max(initial=0)) + 1
        if len(self._hashes) < most:
            # A fixed seed: the same program gives the same classes every time.
            rng = np.random.default_rng(20_250_101)
            self._hashes = rng.integers(0, 2**64 - 1, size=max(most, 256), dtype=np.uint64) | np.uint64(1)
        return self._hashes[numbers]
