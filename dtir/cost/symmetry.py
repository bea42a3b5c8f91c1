"""Tells the ranks of a program apart: the classes of `dtir.cost.classes`, from everything in which ranks may differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import group_size_of, member_count
from dtir.cost.classes import Pairs, Pattern, RankClasses
from dtir.cost.exchange import Exchange
from dtir.cost.sizes import LocalSizes
from dtir.cost.spread import rank_array
from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR, Scope
from dtir.ir.tasks import PointToPoint
from dtir.ir.values import DistributedValue


def rank_classes(
    program: DistributedTaskIR, scopes: Sequence[Scope], exchanges: Mapping[int, Exchange], sizes: LocalSizes
) -> RankClasses:
    """The classes of a program's ranks.

    Args:
        program: the program.
        scopes: the program and the regions that run.
        exchanges: its communication tasks.
        sizes: its local sizes.

    Raises:
        TooMany: ranks differ, and there are more than are looked at one by one.
    """
    classes = RankClasses(program.mesh.size)
    marks = _Marks(classes)
    marks.sets(ranks for scope in scopes for ranks in _rank_sets(scope, program.mesh.size))
    for scope in scopes:
        for task in scope.tasks:
            if isinstance(task.body, PointToPoint):
                marks.single((task.body.spec.source_rank, task.body.spec.destination_rank))
        for value in scope.values:
            if not sizes.is_uniform(value):
                marks.uneven(value, program.mesh)
    marks.issue(program)
    marks.split()
    classes.refine(_patterns(exchanges.values(), classes))
    return classes


def _rank_sets(scope: Scope, mesh_size: int) -> Iterable[Sequence[int]]:
    seen: set[int] = set()
    for ranks in (*(task.ranks for task in scope.tasks), *(value.owners for value in scope.values)):
        if id(ranks) not in seen:
            seen.add(id(ranks))
            if 0 < len(ranks) < mesh_size:
                yield ranks


def _patterns(exchanges: Iterable[Exchange], classes: RankClasses) -> list[Pattern | Pairs]:
    """The different patterns in which ranks meet; none when all are alike in every one of them."""
    different: dict[tuple[object, ...], Exchange] = {}
    for exchange in exchanges:
        if exchange.paired:
            key: tuple[object, ...] = (exchange.groups, None if exchange.place is None else exchange.place.tobytes())
        else:
            key = (id(exchange.groups), None if exchange.place is None else exchange.place.tobytes())
        different.setdefault(key, exchange)
    if classes.count == 1 and all(_is_alike(item, classes.ranks) for item in different.values()):
        return []
    return [item.pattern() for item in different.values() if len(item.groups)]


def _is_alike(exchange: Exchange, mesh_size: int) -> bool:
    """Whether a collective tells nobody apart: groups of one size and price that everybody is in."""
    groups = exchange.groups
    return (
        not exchange.paired
        and exchange.place is None
        and (not len(groups) or (member_count(groups) == mesh_size and group_size_of(groups) is not None))
    )


class _Marks:
    """Random words that ranks collect for everything that is special about them; equal sums are taken as equal ranks."""

    def __init__(self, classes: RankClasses) -> None:
        self._classes = classes
        self._words: npt.NDArray[np.uint64] | None = None
        self._rng = np.random.default_rng(20_250_102)
        self._single: dict[int, np.uint64] = {}

    def _word(self) -> np.uint64:
        return np.uint64(int(self._rng.integers(1, 2**63)))

    def _array(self) -> npt.NDArray[np.uint64]:
        if self._words is None:
            self._words = self._classes.blank().astype(np.uint64)
        return self._words

    def _add(self, rank: int, word: np.uint64) -> None:
        # As an array of one: sums of words wrap around, which numpy remarks upon for scalars.
        self._array()[rank : rank + 1] += word

    def sets(self, sets: Iterable[Sequence[int]]) -> None:
        """Members of every different set."""
        known: set[object] = set()
        for ranks in sets:
            if ranks not in known:
                known.add(ranks)
                np.add.at(self._array(), rank_array(ranks), self._word())

    def single(self, ranks: Sequence[int]) -> None:
        """Ranks of which each is unlike all others."""
        for rank in ranks:
            if rank not in self._single:
                self._single[rank] = self._word()
                self._add(rank, self._single[rank])

    def uneven(self, value: DistributedValue, mesh: LogicalMesh) -> None:
        """Ranks by how much they hold of a value."""
        words = self._array()
        for item in value.local_shapes:
            if item.rank < len(words):
                self._add(item.rank, self._of((*item.shape,)))
        axis_sizes = {axis.name: axis.size for axis in mesh.axes}
        strides: dict[str, int] = {}
        stride = 1
        for axis in reversed(mesh.axes):
            strides[axis.name] = stride
            stride *= axis.size
        ranks = np.arange(mesh.size, dtype=np.int64)
        for item in value.sharding.sizes:
            axes = value.sharding.dimension_axes[item.dim] if item.dim < value.type.rank else ()
            place = np.zeros(mesh.size, dtype=np.int64)
            for axis in axes:
                if axis in axis_sizes:
                    place = place * axis_sizes[axis] + ranks // strides[axis] % axis_sizes[axis]
            table = np.array([self._of((item.dim, size)) for size in item.sizes], dtype=np.uint64)
            np.add.at(words, ranks, table[np.minimum(place, len(table) - 1)])

    def _of(self, key: tuple[object, ...]) -> np.uint64:
        # One word for one key within a run; hash() of numbers does not depend on the process.
        return np.uint64(abs(hash(key)) * 2 + 1)

    def issue(self, program: DistributedTaskIR) -> None:
        """Ranks by the order in which they issue."""
        known: dict[tuple[tuple[str, ...], ...], np.uint64] = {}
        for item in program.issue:
            if item.rank >= program.mesh.size:
                continue
            key = tuple(tuple(task.value for task in step) for step in item.steps)
            if key not in known:
                known[key] = self._word()
            self._add(item.rank, known[key])

    def split(self) -> None:
        """Tell apart what the words tell apart."""
        if self._words is not None:
            self._classes.split(np.unique(self._words, return_inverse=True)[1].astype(np.int64))
