"""Communication tasks with their bytes and prices, and what a reshard moves, worked out by hand (SEMANTICS 3.1 and 3.3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost.exchange import Exchange
from dtir.cost.profile import Level, MachineProfile, Rates, Source, Standing
from dtir.cost.reshard import Volume, reshard_volume
from dtir.cost.schedule import make_schedule
from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    Collective,
    CollectivePermute,
    DistributedTaskIR,
    PeerTransfer,
    PointToPoint,
    ProgramBuilder,
    ReduceScatter,
    ReductionKind,
    Reshard,
)
from dtir.ir.sharding import Halo, HaloDim, ShardingSpec
from dtir.ir.tasks import ReshardKind, ReshardRegion, Span

ALPHA, BETA = 1e-6, 1e-9
MACHINE = MachineProfile(
    "paper",
    "",
    Source(Standing.MODEL, "made up", "2026-01-01"),
    levels=(Level("net", None, ALPHA, BETA),),
    rates=Rates(),
)
"""One switch, no cost of reducing."""

RANKS = tuple(range(8))
SUM = ReductionKind.SUM
S = 1 << 20


def exchange(body: Any, **fields: Any) -> Exchange:
    """The exchange of a program's one task, on 8 ranks."""
    build = ProgramBuilder("one", axes={"x": 8})
    x, y = (build.input("x", (4,), "f32"), build.value("y", (4,), "f32"))
    build.task("demo.talk", (x,), (y,), body=body, name="talk", **fields)
    (found,) = make_schedule(build.build(), MACHINE).or_raise().exchanges.values()
    return found


@pytest.mark.parametrize(
    ("spec", "total", "seconds", "algorithm"),
    [
        # p = 8, lg p = 3. Rabenseifner: 2 lg p alpha + 2 n (p-1)/p beta.
        (AllReduce(RANKS, S, SUM, axes=("x",)), 14 * S, 6 * ALPHA + 2 * S * 7 / 8 * BETA, "rabenseifner"),
        (ReduceScatter(RANKS, S, SUM, axes=("x",), dim=0), 7 * S, 3 * ALPHA + S * 7 / 8 * BETA, "recursive_halving"),
        (AllGather(RANKS, S, axes=("x",), dim=0), 7 * S, 3 * ALPHA + S * 7 / 8 * BETA, "recursive_doubling"),
        (AllToAll(RANKS, S, axes=("x",), split_dim=0, concat_dim=0), 7 * S, 7 * ALPHA + S * 7 / 8 * BETA, "pairwise"),
        # Scatter and all_gather: (lg p + p - 1) alpha + 2 n (p-1)/p beta.
        (Broadcast(RANKS, S, 0, axes=("x",)), 7 * S, 10 * ALPHA + 2 * S * 7 / 8 * BETA, "scatter_all_gather"),
    ],
    ids=lambda item: type(item).__name__ if hasattr(item, "participants") else "",
)
def test_collectives_by_the_formulas(spec: Any, total: float, seconds: float, algorithm: str) -> None:
    found = exchange(Collective(spec))
    assert found.total_bytes == total
    assert found.price.seconds == pytest.approx(seconds)
    assert found.price.algorithm == algorithm
    assert (found.size_bytes, found.group_size) == (S, 8)


def test_short_messages_take_fewer_steps() -> None:
    """Recursive doubling: lg p (alpha + n beta)."""
    found = exchange(Collective(AllReduce(RANKS, 8, SUM, axes=("x",))))
    assert found.price.seconds == pytest.approx(3 * (ALPHA + 8 * BETA))


def test_groups_share_a_price_and_bytes_add_up() -> None:
    groups = ((0, 1, 2, 3), (4, 5, 6, 7))
    found = exchange(Collective(AllReduce(RANKS, S, SUM, groups=groups)))
    assert len(found.prices) == 1
    assert found.group_size == 4
    assert found.total_bytes == 2 * 2 * 3 * S
    assert found.price.seconds == pytest.approx(4 * ALPHA + 2 * S * 3 / 4 * BETA)


def test_groups_of_different_size_pay_their_own() -> None:
    found = exchange(Collective(AllReduce(RANKS, S, SUM, groups=((0, 1), (2, 3, 4, 5, 6, 7)))))
    assert found.group_size is None
    assert len(found.prices) == 2
    assert found.total_bytes == 2 * S + 10 * S
    assert found.price.seconds == max(item.seconds or 0.0 for item in found.prices)


def test_pairs_go_at_once_and_who_stays_sends_nothing() -> None:
    found = exchange(Collective(CollectivePermute(RANKS, S, pairs=((0, 1), (1, 0), (2, 2)))))
    assert (found.total_bytes, found.paired, len(found.groups)) == (2 * S, True, 2)
    assert found.price.seconds == pytest.approx(ALPHA + S * BETA)
    one = exchange(PointToPoint(PeerTransfer(3, 5, S)), ranks=(3, 5))
    assert one.total_bytes == S
    assert one.kind == "transfer"


# -- reshards -------------------------------------------------------------------------------------------------------------------

ROWS = ShardingSpec((("x",), ()), ())
COLUMNS = ShardingSpec(((), ("x",)), ())
EQUAL = ShardingSpec(((), ()), ("x",))


def resharded(before: ShardingSpec, after: ShardingSpec, ranks: int, side: int, **body: Any) -> Volume | str:
    build = ProgramBuilder("reshard", axes={"x": ranks})
    x = build.input("x", (side, side), "f32", sharding=before)
    y = build.value("y", (side, side), "f32", sharding=after)
    build.task("demo.reshard", (x,), (y,), body=Reshard(**body), name="r")
    program: DistributedTaskIR = build.build()
    (task,) = program.tasks
    assert isinstance(task.body, Reshard)
    return reshard_volume(task, task.body, {value.id: value for value in program.values}, program.mesh)


def test_rows_to_columns_keep_the_diagonal() -> None:
    """8 x 8 on 4 ranks: each wants 8 x 2 and has 2 x 2 of it; 12 elements come in 3 messages."""
    assert resharded(ROWS, COLUMNS, 4, 8) == Volume(4 * 12 * 4, 48, 3)


def test_what_everybody_has_is_not_moved() -> None:
    assert resharded(EQUAL, ROWS, 4, 8) == Volume(0, 0, 0)
    assert resharded(ROWS, ROWS, 4, 8) == Volume(0, 0, 0)


def test_rows_to_everybody_is_a_gather() -> None:
    """Each rank lacks 3/4 of 64 elements, one message from every other rank."""
    assert resharded(ROWS, EQUAL, 4, 8) == Volume(4 * 48 * 4, 192, 3)


def test_only_the_blocks_that_are_named_move() -> None:
    region = ReshardRegion((Span(0, 1), Span(0, 8)), (Span(7, 8), Span(0, 8)))
    found = resharded(ROWS, ROWS, 4, 8, regions=(region,))
    assert found == Volume(32, 32, 1), "row 7 of the last rank goes to row 0 of the first"


@pytest.mark.parametrize(("corners", "elements"), [(False, 2 * 8), (True, 2 * 8)])
def test_ghost_layers_come_from_the_neighbours(corners: bool, elements: int) -> None:
    """Two rows of 8 around every block of 2 rows on 4 ranks."""
    ghosts = ShardingSpec((("x",), ()), (), halo=Halo((HaloDim(0, 1, 1),), corners))
    assert resharded(ROWS, ghosts, 4, 8, kind=ReshardKind.HALO) == Volume(4 * elements * 4, elements * 4, 2)


@given(st.sampled_from([1, 2, 4]), st.sampled_from([4, 8, 16]))
def test_a_reshard_moves_at_least_what_is_missing_and_at_most_all(ranks: int, side: int) -> None:
    for before in (ROWS, COLUMNS, EQUAL):
        for after in (ROWS, COLUMNS, EQUAL):
            found = resharded(before, after, ranks, side)
            assert isinstance(found, Volume)
            held = side * side // (ranks if after is not EQUAL else 1)
            assert 0 <= found.busiest_bytes <= 4 * held
            assert found.busiest_bytes <= found.total_bytes <= ranks * found.busiest_bytes
