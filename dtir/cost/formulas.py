"""What collective algorithms cost in the α–β–γ model: steps, bytes and reduced bytes, exactly.

Symbols: p ranks of a group; n bytes, the nccl-tests size S (SEMANTICS 3.1); α seconds a message; β seconds a byte sent;
γ seconds a byte reduced. A formula gives `Terms`, the coefficients of α, β and γ along the longest chain of messages, and
the bytes that all ranks of the group send together.

>>> ring_all_reduce(4, 1024)
Terms(steps=6, wire_bytes=Fraction(1536, 1), reduced_bytes=Fraction(768, 1), total_bytes=6144)
>>> ring_all_reduce(4, 1024) == ring_reduce_scatter(4, 1024) + ring_all_gather(4, 1024)
True

**Source**: comments of MPICH's collectives (pmodels/mpich at 6a79bf6); Thakur, Rabenseifner, Gropp, "Optimization of
collective communication operations in MPICH", 2005, doi 10.1177/1094342005051521. Lower bounds: Chan, Heimlich,
Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience", 2007, doi 10.1002/cpe.1206.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Terms:
    """Coefficients of one algorithm.

    Args:
        steps: messages one after the other, the factor of α.
        wire_bytes: bytes sent one after the other, the factor of β.
        reduced_bytes: bytes reduced one after the other, the factor of γ.
        total_bytes: bytes that all ranks of the group send together.
    """

    steps: Number
    wire_bytes: Number
    reduced_bytes: Number = 0
    total_bytes: Number = 0

    def __add__(self, other: Terms) -> Terms:
        """One after the other."""
        return Terms(
            self.steps + other.steps,
            self.wire_bytes + other.wire_bytes,
            self.reduced_bytes + other.reduced_bytes,
            self.total_bytes + other.total_bytes,
        )

    def seconds(self, alpha_s: float, beta_s_per_byte: float, gamma_s_per_byte: float = 0.0) -> float:
        """The time of the whole chain.

        Units: seconds.
        """
        return float(
            float(self.steps) * alpha_s
            + float(self.wire_bytes) * beta_s_per_byte
            + float(self.reduced_bytes) * gamma_s_per_byte
        )


NOTHING = Terms(0, 0, 0, 0)
"""A group of one rank, or an empty message between nobody."""


def share(n: Number, numerator: int, denominator: int) -> Number:
    """``n * numerator / denominator``, exact for whole numbers."""
    if isinstance(n, float):
        return n * numerator / denominator
    return Fraction(n) * numerator / denominator


def ceil_log2(p: int) -> int:
    """⌈lg p⌉."""
    return (p - 1).bit_length()


def floor_log2(p: int) -> int:
    """⌊lg p⌋."""
    return p.bit_length() - 1


def is_power_of_two(p: int) -> bool:
    """True for 1, 2, 4, ..."""
    return p & (p - 1) == 0


def require_group(p: int) -> None:
    """Raise unless a group has a rank.

    Raises:
        ValueError: `p` is below 1.
    """
    if p < 1:
        raise ValueError(f"p={p} (int): a group has at least one rank")


# -- all-reduce -------------------------------------------------------------------------------------------------------


def recursive_doubling_all_reduce(p: int, n: Number) -> Terms:
    """``lg p·α + n lg p·β + n lg p·γ``: each step exchanges the whole vector with a rank 1, 2, 4, ... away.

    For other p MPICH folds the ranks beyond the power of two below p into their neighbours first and hands them the
    result at the end: ``(⌊lg p⌋+2)α + (⌊lg p⌋+2)nβ + (⌊lg p⌋+1)nγ``.
    """
    require_group(p)
    steps, whole = floor_log2(p), 1 << floor_log2(p)
    rest = p - whole
    extra = 2 if rest else 0
    return Terms(steps + extra, n * (steps + extra), n * (steps + (1 if rest else 0)), n * (whole * steps + 2 * rest))


def rabenseifner_all_reduce(p: int, n: Number) -> Terms:
    """Reduce-scatter by halving, all-gather by doubling: ``2 lg p·α + 2n(p−1)/p·β + n(p−1)/p·γ``.

    For p that is no power of two ``(2⌊lg p⌋+2)α + (2(p−1)/p+2)nβ + (1+(p−1)/p)nγ`` (MPICH states it with p; the power
    of two q below p in its place is what the steps need, which is a little less).
    """
    require_group(p)
    steps, whole = floor_log2(p), 1 << floor_log2(p)
    rest = p - whole
    scattered = share(n, p - 1, p)
    total = share(n, 2 * (whole - 1), 1) + 2 * rest * n
    if not rest:
        return Terms(2 * steps, 2 * scattered, scattered, total)
    return Terms(2 * steps + 2, 2 * scattered + 2 * n, scattered + n, total)


def ring_all_reduce(p: int, n: Number) -> Terms:
    """``2(p−1)α + 2n(p−1)/p·β + n(p−1)/p·γ``: a ring reduce-scatter, then a ring all-gather."""
    return ring_reduce_scatter(p, n) + ring_all_gather(p, n)


def tree_all_reduce(p: int, n: Number, chunks: int = 1) -> Terms:
    """A binary tree up and down, pipelined in k chunks: ``≈ 2(lg p + k − 1)(α + n/k·β)``, half of it with γ [L]."""
    require_group(p)
    if p == 1:
        return NOTHING
    rounds = ceil_log2(p) + max(1, chunks) - 1
    up = share(n, rounds, max(1, chunks))
    return Terms(2 * rounds, 2 * up, up, 2 * (p - 1) * n)


def best_chunks(p: int, n: Number, alpha_s: float, beta_s_per_byte: float) -> int:
    """The k that makes `tree_all_reduce` cheapest: ``√((lg p − 1)·n·β/α)``, at least 1, at most one a kilobyte."""
    if p <= 2 or alpha_s <= 0:
        return 1
    wanted = math.sqrt((ceil_log2(p) - 1) * float(n) * beta_s_per_byte / alpha_s)
    return max(1, min(round(wanted), int(float(n)) // 1024 or 1))


# -- reduce-scatter ---------------------------------------------------------------------------------------------------


def recursive_halving_reduce_scatter(p: int, n: Number) -> Terms | None:
    """``lg p·α + n(p−1)/p·(β+γ)``; None unless p is a power of two."""
    require_group(p)
    if not is_power_of_two(p):
        return None
    return Terms(floor_log2(p), share(n, p - 1, p), share(n, p - 1, p), (p - 1) * n)


def ring_reduce_scatter(p: int, n: Number) -> Terms:
    """``(p−1)α + n(p−1)/p·(β+γ)``: blocks travel round the ring and grow by a share in each step."""
    require_group(p)
    return Terms(p - 1, share(n, p - 1, p), share(n, p - 1, p), (p - 1) * n)


def pairwise_reduce_scatter(p: int, n: Number) -> Terms:
    """``(p−1)α + n(p−1)/p·(β+γ)``: in step i every rank sends the block of the rank i further on."""
    return ring_reduce_scatter(p, n)


# -- all-gather -------------------------------------------------------------------------------------------------------


def ring_all_gather(p: int, n: Number) -> Terms:
    """``(p−1)α + n(p−1)/p·β``; n is the whole result."""
    require_group(p)
    return Terms(p - 1, share(n, p - 1, p), 0, (p - 1) * n)


def recursive_doubling_all_gather(p: int, n: Number) -> Terms | None:
    """``lg p·α + n(p−1)/p·β``; None unless p is a power of two."""
    require_group(p)
    if not is_power_of_two(p):
        return None
    return Terms(floor_log2(p), share(n, p - 1, p), 0, (p - 1) * n)


def bruck_all_gather(p: int, n: Number) -> Terms:
    """``⌈lg p⌉α + n(p−1)/p·β``, for any p."""
    require_group(p)
    return Terms(ceil_log2(p), share(n, p - 1, p), 0, (p - 1) * n)


# -- all-to-all -------------------------------------------------------------------------------------------------------


def bruck_all_to_all(p: int, n: Number) -> Terms:
    """``lg p·α + (n/2) lg p·β`` for powers of two; else step k carries the blocks whose distance has bit k set."""
    require_group(p)
    blocks = sum(_ones_at(p, bit) for bit in range(ceil_log2(p)))
    return Terms(ceil_log2(p), share(n, blocks, p), 0, n * blocks)


def _ones_at(p: int, bit: int) -> int:
    """How many of 0 .. p−1 have a bit set."""
    period = 1 << (bit + 1)
    whole, rest = divmod(p, period)
    return whole * (period >> 1) + max(0, rest - (period >> 1))


def pairwise_all_to_all(p: int, n: Number) -> Terms:
    """``(p−1)α + n(p−1)/p·β``: in step i every rank exchanges one block with the rank i further on."""
    require_group(p)
    return Terms(p - 1, share(n, p - 1, p), 0, (p - 1) * n)


def ring_all_to_all(p: int, n: Number) -> Terms:
    """On a bidirectional ring without a switch, blocks go the shorter way round: about ``(p/2)α + n·p/8·β``.

    β is that of one link in one direction; a block for a rank at distance d occupies d links. Both directions work at
    once, so that the time is that of the busier one, and `total_bytes` counts every link that a block crosses.

    **Source**: counting of links on a ring; "How to Scale Your Model" (jax-ml.github.io/scaling-book, sharded matmuls)
    gives the same n·p/8 for even p.
    """
    require_group(p)
    there = sum(range(1, p // 2 + 1))
    back = sum(range(1, (p - 1) // 2 + 1))
    # For even p the farthest block may go either way: half of it does.
    if p > 1 and p % 2 == 0:
        busiest = share(n, 2 * there - p // 2, 2 * p)
    else:
        busiest = share(n, there, p)
    return Terms(p // 2, busiest, 0, n * (there + back))


# -- broadcast --------------------------------------------------------------------------------------------------------


def binomial_broadcast(p: int, n: Number) -> Terms:
    """``⌈lg p⌉(α + nβ)``: who has the value hands it on, 1, 2, 4, ... ranks at a time."""
    require_group(p)
    return Terms(ceil_log2(p), n * ceil_log2(p), 0, (p - 1) * n)


def scatter_all_gather_broadcast(p: int, n: Number) -> Terms:
    """``(lg p + p − 1)α + 2n(p−1)/p·β``: a binomial scatter, then a ring all-gather (van de Geijn)."""
    require_group(p)
    half = share(n, p - 1, p)
    # The scatter passes a block once for every level of the tree below it.
    return Terms(ceil_log2(p) + p - 1, 2 * half, 0, _scatter_total(p, n) + (p - 1) * n)


def _scatter_total(p: int, n: Number) -> Number:
    """Bytes of a binomial scatter: the block of rank r crosses as many links as r has bits set."""
    return share(n, sum(_ones_at(p, bit) for bit in range(ceil_log2(p))), p)


# -- transfers --------------------------------------------------------------------------------------------------------


def transfer(p: int, n: Number) -> Terms:
    """``α + nβ``: one message from one rank to another."""
    require_group(p)
    return Terms(1, n, 0, n)


# -- bidirectional rings ----------------------------------------------------------------------------------------------


def both_ways(terms: Terms) -> Terms:
    """A ring algorithm on two rings of opposite direction with half of the data each: as many steps, half the bytes.

    β is then that of one link in one direction.
    """
    return Terms(terms.steps, share(terms.wire_bytes, 1, 2), terms.reduced_bytes, terms.total_bytes)
