"""Which algorithms there are for a collective, and which of them is cheapest for a message on a link.

>>> link = Link(1e-6, 1e-10)
>>> best(CollectiveKind.ALL_REDUCE, 8, 64, link).name, best(CollectiveKind.ALL_REDUCE, 8, 1 << 28, link).name
('recursive_doubling', 'rabenseifner')
>>> crossovers(CollectiveKind.BROADCAST, 8, link, 8, 1 << 24)
[(8, 'binomial'), (56001, 'scatter_all_gather')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from dtir.cost import formulas as f
from dtir.cost.formulas import Number, Terms
from dtir.ir.collectives import CollectiveKind


class Shape(Enum):
    """How the ranks of a level are wired.

    * `SWITCH`: any two exchange at full rate.
    * `RING`: a ring (a torus dim) with a link to each neighbour, in both directions at once; messages pass through
      the ranks in between.
    """

    SWITCH = "switch"
    RING = "ring"


@dataclass(frozen=True, slots=True)
class Link:
    """What a message costs.

    Args:
        alpha_s: seconds a message.
        beta_s_per_byte: seconds a byte; on a ring those of one link in one direction.
        gamma_s_per_byte: seconds a byte that is reduced.
        shape: how the ranks are wired.
    """

    alpha_s: float
    beta_s_per_byte: float
    gamma_s_per_byte: float = 0.0
    shape: Shape = Shape.SWITCH

    def slowed(self, factor: float) -> Link:
        """The link when `factor` users share its bandwidth."""
        if factor <= 1:
            return self
        return Link(self.alpha_s, self.beta_s_per_byte * factor, self.gamma_s_per_byte, self.shape)


@dataclass(frozen=True, slots=True)
class Choice:
    """One algorithm for one message: its coefficients and its time."""

    name: str
    terms: Terms
    seconds: float


Formula: TypeAlias = Callable[[int, Number], Terms | None]

_AR, _RS, _AG = CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER
_A2A, _BC, _CP = CollectiveKind.ALL_TO_ALL, CollectiveKind.BROADCAST, CollectiveKind.COLLECTIVE_PERMUTE

ALGORITHMS: Mapping[CollectiveKind, Mapping[str, Formula]] = MappingProxyType(
    {
        _AR: {
            "recursive_doubling": f.recursive_doubling_all_reduce,
            "rabenseifner": f.rabenseifner_all_reduce,
            "ring": f.ring_all_reduce,
        },
        _RS: {
            "recursive_halving": f.recursive_halving_reduce_scatter,
            "ring": f.ring_reduce_scatter,
            "pairwise": f.pairwise_reduce_scatter,
        },
        _AG: {
            "recursive_doubling": f.recursive_doubling_all_gather,
            "bruck": f.bruck_all_gather,
            "ring": f.ring_all_gather,
        },
        _A2A: {"bruck": f.bruck_all_to_all, "pairwise": f.pairwise_all_to_all},
        _BC: {"binomial": f.binomial_broadcast, "scatter_all_gather": f.scatter_all_gather_broadcast},
        _CP: {"transfer": f.transfer},
    }
)
"""Every algorithm by collective and name; a formula gives None where the algorithm does not exist for that p.

The pipelined tree of all_reduce, whose number of chunks depends on the link, is added by `candidates`.
"""


def _ring(formula: Callable[[int, Number], Terms]) -> Formula:
    def cost(p: int, n: Number) -> Terms:
        return f.both_ways(formula(p, n))

    return cost


RING_ALGORITHMS: Mapping[CollectiveKind, Mapping[str, Formula]] = MappingProxyType(
    {
        _AR: {"bidirectional_ring": _ring(f.ring_all_reduce)},
        _RS: {"bidirectional_ring": _ring(f.ring_reduce_scatter)},
        _AG: {"bidirectional_ring": _ring(f.ring_all_gather)},
        _A2A: {"bidirectional_ring": f.ring_all_to_all},
        _BC: {"bidirectional_ring": _ring(f.scatter_all_gather_broadcast)},
        _CP: {"transfer": f.transfer},
    }
)
"""What is left on a ring without a switch."""


def candidates(kind: CollectiveKind, p: int, n: Number, link: Link) -> Iterator[Choice]:
    """Every algorithm for one message, in the order of the tables."""
    table = (RING_ALGORITHMS if link.shape is Shape.RING else ALGORITHMS)[kind]
    for name, formula in table.items():
        terms = formula(p, n)
        if terms is not None:
            yield Choice(name, terms, _seconds(terms, link))
    if kind is _AR and link.shape is Shape.SWITCH:
        terms = f.tree_all_reduce(p, n, f.best_chunks(p, n, link.alpha_s, link.beta_s_per_byte))
        yield Choice("tree", terms, _seconds(terms, link))


def _seconds(terms: Terms, link: Link) -> float:
    return terms.seconds(link.alpha_s, link.beta_s_per_byte, link.gamma_s_per_byte)


def best(kind: CollectiveKind, p: int, n: Number, link: Link) -> Choice:
    """The cheapest algorithm; of equally cheap ones the first of the table."""
    if p <= 1:
        return Choice("none", f.NOTHING, 0.0)
    return min(candidates(kind, p, n, link), key=lambda choice: choice.seconds)


def crossovers(kind: CollectiveKind, p: int, link: Link, least_bytes: int, most_bytes: int) -> list[tuple[int, str]]:
    """From which message size on which algorithm is cheapest, between two sizes.

    Returns:
        (first size in bytes, algorithm), rising; sizes are found to the byte by bisection between powers of two.

    Raises:
        ValueError: the sizes are not ``1 <= least <= most``.
    """
    if not 1 <= least_bytes <= most_bytes:
        raise ValueError(f"least_bytes={least_bytes}, most_bytes={most_bytes}: wanted 1 <= least <= most")

    def name_at(size: int) -> str:
        return best(kind, p, size, link).name

    found = [(least_bytes, name_at(least_bytes))]
    low = least_bytes
    while low < most_bytes:
        high = min(low * 2, most_bytes)
        while name_at(high) != found[-1][1]:
            first, last = low, high  # name_at(first) is the current one, name_at(last) another
            while last - first > 1:
                middle = (first + last) // 2
                if name_at(middle) == found[-1][1]:
                    first = middle
                else:
                    last = middle
            found.append((last, name_at(last)))
            low = last
        low = high
    return found
