"""Prices: which model answers, and what is said about interpolation, extrapolation and gaps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost.algorithms import Link, Shape, best
from dtir.cost.hierarchy import hierarchical
from dtir.cost.nccl import Generation, NcclMachine, nccl_best
from dtir.cost.presets import load_preset, preset_names
from dtir.cost.price import FREE, Pricer
from dtir.cost.profile import Curve, Level, MachineProfile, Noise, Rates, Segment, Source, Standing
from dtir.cost.spread import Spread
from dtir.ir.collectives import CollectiveKind

AR, AG, A2A = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL
P2P, BC = CollectiveKind.COLLECTIVE_PERMUTE, CollectiveKind.BROADCAST

SOURCE = Source(Standing.MEASURED, "a test", "2026-01-01")
NODE, NET = Level("node", 8, 1e-6, 1e-11), Level("net", None, 1e-5, 1e-9, ports=2)


def machine(*curves: Curve, levels: tuple[Level, ...] = (), nccl: NcclMachine | None = None) -> Pricer:
    return Pricer(MachineProfile("m", "", SOURCE, {}, levels, curves, Rates(reduce_s_per_byte=1e-12), nccl))


def flat(op: str, group_size: int, alpha: float, beta: float = 0.0, **fields: object) -> Curve:
    return Curve(op, group_size, segments=(Segment(0, alpha, beta),), **fields)  # type: ignore[arg-type]


def test_a_curve_of_the_group_size_is_taken_as_it_is() -> None:
    noise = (Noise(1024, 20, 1.0, 2.0, 0.5),)
    price = machine(flat("all_reduce", 4, 2e-6, 1e-9, noise=noise)).collective(AR, Spread((4,)), 1000, "f32")
    assert price.seconds == pytest.approx(3e-6)
    assert (price.model, price.noise, price.notes) == ("measured curve of all_reduce", 0.25, ())


def test_group_sizes_in_between_are_interpolated_and_say_so() -> None:
    pricer = machine(flat("all_reduce", 2, 1e-6), flat("all_reduce", 8, 3e-6))
    price = pricer.collective(AR, Spread((4,)), 64, "f32")
    assert price.seconds == pytest.approx(2e-6)
    assert price.notes == ("interpolated between groups of 2 and 8 ranks",)


def test_group_sizes_beyond_are_extrapolated_and_say_so() -> None:
    pricer = machine(flat("all_reduce", 4, 4e-6, 1e-9))
    price = pricer.collective(AR, Spread((16,)), 1000, "f32")
    # lg p doubles; 2(p−1)/p grows from 1.5 to 1.875.
    assert price.seconds == pytest.approx(8e-6 + 1e-6 * 1.875 / 1.5)
    assert price.notes == ("extrapolated from groups of 4 ranks to 16",)
    assert "to 2" in pricer.collective(AR, Spread((2,)), 1000, "f32").notes[0]


def test_sizes_that_were_not_measured_are_said() -> None:
    pricer = machine(flat("all_reduce", 4, 1e-6, measured_bytes=(8, 1 << 20)))
    assert pricer.collective(AR, Spread((4,)), 1 << 20, "f32").notes == ()
    (note,) = pricer.collective(AR, Spread((4,)), 1 << 21, "f32").notes
    assert "8 to 1048576 bytes" in note


def test_the_dtype_class_chooses_the_curve_of_a_reduction() -> None:
    pricer = machine(
        flat("all_reduce", 4, 1e-6, dtype="float32"),
        flat("all_reduce", 4, 9e-6, dtype="float16"),
        flat("all_gather", 4, 5e-6),
    )
    assert pricer.collective(AR, Spread((4,)), 8, "bf16").seconds == 9e-6
    assert pricer.collective(AR, Spread((4,)), 8, "f32").seconds == 1e-6
    assert pricer.collective(AG, Spread((4,)), 8, "bf16").seconds == 5e-6
    odd = pricer.collective(AR, Spread((4,)), 8, "s32")
    assert odd.notes == ("curve of float16 taken for integer",)


def test_the_cheapest_algorithm_is_taken() -> None:
    pricer = machine(
        flat("all_reduce", 4, 1e-6, 1e-8, algorithm="doubling"), flat("all_reduce", 4, 5e-6, 1e-9, algorithm="ring")
    )
    assert pricer.collective(AR, Spread((4,)), 8, "f32").algorithm == "doubling"
    assert pricer.collective(AR, Spread((4,)), 1 << 20, "f32").algorithm == "ring"


def test_a_transport_is_a_level() -> None:
    pricer = machine(flat("all_reduce", 8, 1e-9, transport="node"), levels=(NODE, NET))
    assert pricer.collective(AR, Spread((8, 1)), 8, "f32").seconds == 1e-9
    assert pricer.collective(AR, Spread((1, 8)), 8, "f32").model == "alpha-beta formulas"


def test_a_transfer_takes_the_curve_of_sendrecv() -> None:
    price = machine(flat("sendrecv", 2, 3e-6, 1e-9)).collective(P2P, Spread((2,)), 1000, None)
    assert price.seconds == pytest.approx(4e-6)


def test_without_levels_other_collectives_stand_on_the_sendrecv_curve() -> None:
    price = machine(flat("sendrecv", 2, 3e-6, 1e-9)).collective(BC, Spread((4,)), 8, None)
    assert price.seconds == pytest.approx(best(BC, 4, 8, Link(3e-6, 1e-9)).seconds)
    assert price.model == "alpha-beta formulas on the sendrecv curve"


def test_without_anything_the_time_is_not_known() -> None:
    price = machine(flat("all_gather", 4, 1e-6)).collective(AR, Spread((4,)), 8, "f32")
    assert price.seconds is None
    assert "all_reduce" in price.notes[0]


def test_a_group_of_one_is_free() -> None:
    assert machine(levels=(NODE, NET)).collective(AR, Spread((1, 1)), 1 << 30, "f32") == FREE


sizes = st.integers(0, 1 << 34)


@given(st.integers(1, 8), st.integers(1, 64), sizes)
def test_over_levels_the_cheaper_of_flat_and_hierarchical_is_taken(g: int, nodes: int, n: int) -> None:
    pricer = machine(levels=(NODE, NET))
    links = (NODE.link(1e-12), NET.link(1e-12))
    spread = Spread((g, nodes))
    if spread.members == 1:
        return
    price = pricer.collective(AR, spread, n, "f32")
    wanted = best(AR, g * nodes, n, links[spread.top]).seconds
    if g > 1 and nodes > 1:
        wanted = min(wanted, hierarchical(AR, (g, nodes), n, links).seconds)
    assert price.seconds == pytest.approx(wanted)
    assert price.level == ("net" if nodes > 1 else "node")


def test_ranks_that_share_a_port_share_its_bandwidth() -> None:
    pricer = machine(levels=(NODE, NET))
    one = pricer.collective(P2P, Spread((1, 2)), 1 << 30, None, (1, 1))
    eight = pricer.collective(P2P, Spread((1, 2)), 1 << 30, None, (8, 8))
    assert one.seconds is not None
    assert eight.seconds is not None
    # Two ports for eight ranks.
    assert (eight.seconds - 1e-5) == pytest.approx(4 * (one.seconds - 1e-5))


@given(st.integers(2, 8), st.integers(2, 16), st.integers(1, 1 << 30))
def test_slow_levels_carry_what_hierarchical_algorithms_leave_to_them(g: int, nodes: int, n: int) -> None:
    sent = dict(machine(levels=(NODE, NET)).collective(AR, Spread((g, nodes)), n, "f32").level_bytes)
    assert sent["node"] == pytest.approx(2 * n * (g - 1) / g)
    assert sent["net"] == pytest.approx(2 * (n / g) * (nodes - 1) / nodes)


def test_nccl_answers_what_it_tunes_and_formulas_the_rest() -> None:
    hopper = NcclMachine(Generation.HOPPER, 16, 2e10, 2e10)
    pricer = machine(levels=(NODE, NET), nccl=hopper)
    reduce = pricer.collective(AR, Spread((8, 2)), 1 << 20, "bf16")
    assert reduce.seconds == nccl_best(AR, 16, 2, 1 << 20, hopper, 8 / NET.beta_s_per_byte).seconds
    assert reduce.model == "NCCL tuning model"
    assert pricer.collective(A2A, Spread((8, 2)), 1 << 20, "bf16").model == "alpha-beta formulas"


def test_nccl_finds_no_more_network_than_the_ranks_of_a_node_have() -> None:
    pricer, size = Pricer(load_preset("h100-nvlink-ib")), 1 << 30
    whole = pricer.collective(AG, Spread((8, 16)), size, "bf16", (1, 8)).seconds
    single = pricer.collective(AG, Spread((1, 16)), size, "bf16", (1, 8)).seconds
    assert whole is not None
    assert single is not None
    # One port of 50 GB/s, of which a ring of 16 needs 15/16 of the size; all eight are as fast as NVLink at most.
    assert single >= size * 15 / 16 / 50e9
    assert single > 5 * whole


def test_uneven_groups_and_groups_that_nothing_joins_are_said() -> None:
    pricer = machine(levels=(NODE, Level("rack", 64, 1e-5, 1e-9)))
    assert "unevenly" in pricer.collective(AR, Spread((1, 3), even=False), 8, "f32").notes[0]
    apart = pricer.collective(AR, Spread((1, 2), joined=False), 8, "f32")
    assert (apart.seconds, apart.notes) == (None, ("no level of the profile joins all ranks of the group",))


def test_a_ring_without_a_switch_uses_both_directions() -> None:
    level = Level("ici", None, 1e-6, 1e-11, Shape.RING)
    price = machine(levels=(level,)).collective(AG, Spread((4,)), 1 << 20, "bf16")
    assert price.seconds == pytest.approx(3e-6 + (1 << 20) * 3 / 4 / 2 * 1e-11)
    assert price.algorithm == "bidirectional_ring"


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("kind", CollectiveKind)
def test_every_preset_prices_every_collective(name: str, kind: CollectiveKind) -> None:
    pricer = Pricer(load_preset(name))
    spread = Spread((2, *(1,) * (len(pricer.units) - 1)))
    small, large = (pricer.collective(kind, spread, size, "f32").seconds for size in (8, 1 << 30))
    assert small is not None
    assert large is not None
    assert 0 < small < large
