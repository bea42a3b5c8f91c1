"""What no algorithm can be below: latency, bandwidth and computation of a collective, each on its own.

**Source**: Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience",
2007, doi 10.1002/cpe.1206 [L]; for all_to_all every rank sends its blocks for the others itself.

>>> lower_bound(CollectiveKind.ALL_REDUCE, 8, 800).wire_bytes
Fraction(1400, 1)
"""

from __future__ import annotations

from typing import assert_never

from dtir.cost.formulas import NOTHING, Number, Terms, ceil_log2, require_group, share
from dtir.ir.collectives import CollectiveKind


def lower_bound(kind: CollectiveKind, p: int, n: Number) -> Terms:
    """The three lower bounds together; they need not be reached by one algorithm.

    | kind | α | β | γ |
    |---|---|---|---|
    | broadcast | ⌈lg p⌉ | n | |
    | all_gather, reduce_scatter | ⌈lg p⌉ | n(p−1)/p | (n(p−1)/p) |
    | all_reduce | ⌈lg p⌉ | 2n(p−1)/p | n(p−1)/p |
    | all_to_all | ⌈lg p⌉ | n(p−1)/p | |
    | collective_permute | 1 | n | |

    `total_bytes` is the last column of SEMANTICS 3.1.
    """
    require_group(p)
    if p == 1:
        return NOTHING
    part = share(n, p - 1, p)
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return Terms(ceil_log2(p), 2 * part, part, 2 * (p - 1) * n)
        case CollectiveKind.REDUCE_SCATTER:
            return Terms(ceil_log2(p), part, part, (p - 1) * n)
        case CollectiveKind.ALL_GATHER | CollectiveKind.ALL_TO_ALL:
            return Terms(ceil_log2(p), part, 0, (p - 1) * n)
        case CollectiveKind.BROADCAST:
            return Terms(ceil_log2(p), n, 0, (p - 1) * n)
        case CollectiveKind.COLLECTIVE_PERMUTE:
            return Terms(1, n, 0, n)
        case _:
            assert_never(kind)


def bus_factor(kind: CollectiveKind, p: int) -> float:
    """busbw / algbw, where algbw = S / time (nccl-tests, PERFORMANCE.md): comparable with the speed of a link."""
    if p <= 1:
        return 1.0
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return 2 * (p - 1) / p
        case CollectiveKind.REDUCE_SCATTER | CollectiveKind.ALL_GATHER | CollectiveKind.ALL_TO_ALL:
            return (p - 1) / p
        case CollectiveKind.BROADCAST | CollectiveKind.COLLECTIVE_PERMUTE:
            return 1.0
        case _:
            assert_never(kind)
