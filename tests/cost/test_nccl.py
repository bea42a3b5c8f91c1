"""The NCCL tuning model, with numbers worked out by hand from its formulas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost.nccl import Generation, NcclMachine, Protocol, is_modelled, nccl_best, nccl_times
from dtir.ir.collectives import CollectiveKind

AR, AG, BC = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.BROADCAST
HOPPER = NcclMachine(Generation.HOPPER, 16, 20e9, 20e9)
AMPERE = NcclMachine(Generation.AMPERE, 12, 20e9, 12.5e9)


def time_of(kind: CollectiveKind, ranks: int, nodes: int, size: int, machine: NcclMachine, name: str) -> float:
    (found,) = [item.seconds for item in nccl_times(kind, ranks, nodes, size, machine) if item.name == name]
    return found


def test_a_ring_on_one_node() -> None:
    # Simple: 8.4 us + 14 steps of 3.4 us; 16 channels of 20 GB/s, algbw = busbw · 8/14.
    size = 1 << 30
    assert time_of(AR, 8, 1, size, HOPPER, "ring/Simple") == pytest.approx(
        (8.4 + 14 * 3.4) * 1e-6 + size / (320e9 * 8 / 14)
    )
    # LL128: ×0.92, below 16 channels of 36.7.
    assert time_of(AR, 8, 1, size, HOPPER, "ring/LL128") == pytest.approx(
        (14.0 + 14 * 1.9) * 1e-6 + size / (320e9 * 0.92 * 8 / 14)
    )
    # LL: half of it, capped at 141.
    assert time_of(AR, 8, 1, size, HOPPER, "ring/LL") == pytest.approx(
        (6.6 + 14 * 0.6) * 1e-6 + size / (141e9 * 8 / 14)
    )


def test_a_tree_on_four_nodes() -> None:
    # Simple: 2·(7·4.0 + 2·14) us; min(240·0.92 between nodes at 12.5, 12·17.8)·0.5, corrected ×0.9 at 512 MB.
    size = 1 << 28
    bus = min(150 * 0.92, 12 * 17.8)
    assert time_of(AR, 32, 4, size, AMPERE, "tree/Simple") == pytest.approx(
        (8.4 + 2 * (7 * 4.0 + 2 * 14.0)) * 1e-6 + size / (bus * 0.9 * 0.5 * 1e9)
    )


def test_a_ring_across_nodes_pays_the_plateau_once_messages_are_long() -> None:
    short, long = 64, 1 << 26
    # 2(32−1) steps, 2(4−1) of them across nodes; three times the overhead of the network hides a hop of 3.4.
    latency = 8.4 + (62 - 6) * 3.4 + 6 * 14.0
    assert time_of(AR, 32, 4, short, AMPERE, "ring/Simple") == pytest.approx(latency * 1e-6 + short / (150e9 * 32 / 62))
    assert time_of(AR, 32, 4, long, AMPERE, "ring/Simple") == pytest.approx(
        1.4 * latency * 1e-6 + long / (150e9 * 32 / 62)
    )


def test_short_messages_take_ll_and_long_ones_simple() -> None:
    assert nccl_best(AR, 8, 1, 1024, HOPPER).protocol is Protocol.LL
    assert nccl_best(AR, 8, 1, 1 << 32, HOPPER).name == "ring/Simple"
    assert nccl_best(AR, 256, 32, 1024, HOPPER).algorithm == "tree"


def test_only_all_reduce_has_trees() -> None:
    assert {item.algorithm for item in nccl_times(AG, 8, 1, 1 << 20, HOPPER)} == {"ring"}
    assert time_of(BC, 8, 1, 1 << 20, HOPPER, "ring/Simple") == pytest.approx((8.4 + 3.4) * 1e-6 + (1 << 20) / 320e9)


@given(
    st.sampled_from([kind for kind in CollectiveKind if is_modelled(kind)]),
    st.integers(1, 64),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 1 << 34),
)
def test_more_bytes_never_take_less_on_one_algorithm(kind: CollectiveKind, nodes: int, each: int, size: int) -> None:
    if nodes * each < 2:
        return
    for less, more in zip(
        nccl_times(kind, nodes * each, nodes, size, HOPPER),
        nccl_times(kind, nodes * each, nodes, 4 * size, HOPPER),
        strict=True,
    ):
        assert 0 < less.seconds <= more.seconds


@pytest.mark.parametrize(
    ("kind", "ranks", "nodes"),
    [(CollectiveKind.ALL_TO_ALL, 8, 1), (AR, 1, 1), (AR, 4, 8), (AR, 8, 0)],
)
def test_what_is_not_modelled_is_refused(kind: CollectiveKind, ranks: int, nodes: int) -> None:
    with pytest.raises(ValueError, match=f"ranks={ranks}"):
        list(nccl_times(kind, ranks, nodes, 64, HOPPER))


def test_a_link_that_is_not_tabled_is_refused() -> None:
    with pytest.raises(ValueError, match="token-ring"):
        NcclMachine(Generation.AMPERE, 12, 20e9, 20e9, "token-ring")
