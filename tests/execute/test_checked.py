"""What is counted as wrong in a collective: nothing that rounding explains, and every element beyond it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import Exchange, Slab
from dtir.execute.checked import Checker, wrong_elements
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.fabric import LocalFabric
from dtir.execute.values import rows
from dtir.ir.collectives import CollectiveKind
from dtir.ir.reductions import ReductionKind
from tests.helpers.running import hlo_program, plan_of, session_of

RANKS = (0, 1, 2, 3)
WORLD = (RANKS,)
PAIRS = ((0, 1), (2, 3))

EXCHANGES = {
    "all_reduce": Exchange(CollectiveKind.ALL_REDUCE, WORLD, (0,), ReductionKind.SUM),
    "all_reduce of pairs": Exchange(CollectiveKind.ALL_REDUCE, PAIRS, (0, 1), ReductionKind.AVERAGE),
    "maximum": Exchange(CollectiveKind.ALL_REDUCE, WORLD, (0,), ReductionKind.MAX),
    "reduce_scatter": Exchange(CollectiveKind.REDUCE_SCATTER, WORLD, (0,), ReductionKind.SUM, dim=0),
    "all_gather": Exchange(CollectiveKind.ALL_GATHER, PAIRS, (0, 1), dim=0),
    "all_to_all": Exchange(CollectiveKind.ALL_TO_ALL, WORLD, (0,), split=0, concat=0),
    "broadcast": Exchange(CollectiveKind.BROADCAST, WORLD, (0,), roots=(2,)),
    "permute": Exchange(CollectiveKind.COLLECTIVE_PERMUTE, (), pairs=((0, 1), (1, 0))),
}


def operands(dtype: str, seed: int = 0) -> np.ndarray:
    numbers = np.random.default_rng(seed).normal(0, 8, (4, 8))
    return numbers.astype(numpy_dtype(dtype))


def done(request: Exchange, array: np.ndarray) -> tuple[dict[int, Any], dict[int, Any]]:
    """What every rank brings and gets."""
    (held,) = LocalFabric(RANKS).exchange(request, [Slab(RANKS, array)], RANKS, None)
    got = {rank: np.array(row) for rank, row in zip(held.ranks, rows(held), strict=True)}
    return dict(zip(RANKS, array, strict=True)), got


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "bf16", "f16"])
def test_the_reference_is_right_and_one_changed_element_is_not(name: str, dtype: str) -> None:
    request = EXCHANGES[name]
    given_, got = done(request, operands(dtype))
    assert wrong_elements(request, [given_], [got]) == 0
    got[1].reshape(-1)[0] += np.asarray(32, got[1].dtype)
    assert wrong_elements(request, [given_], [got]) == 1


@given(st.integers(0, 1000), st.permutations(RANKS))
def test_sums_in_another_order_are_not_wrong(seed: int, order: list[int]) -> None:
    array = operands("f32", seed)
    request = EXCHANGES["all_reduce"]
    total = array[order[0]].copy()
    for rank in order[1:]:
        total += array[rank]
    assert wrong_elements(request, [dict(zip(RANKS, array, strict=True))], [dict.fromkeys(RANKS, total)]) == 0


def test_what_is_only_moved_must_be_the_same_bits() -> None:
    request = EXCHANGES["all_gather"]
    given_, got = done(request, operands("f32"))
    got[0] = np.nextafter(got[0], np.float32(np.inf))
    assert wrong_elements(request, [given_], [got]) == got[0].size


def test_not_a_number_is_right_where_it_is_expected() -> None:
    array = operands("f32")
    array[2, 3] = np.nan
    given_, got = done(EXCHANGES["all_reduce"], array)
    assert wrong_elements(EXCHANGES["all_reduce"], [given_], [got]) == 0
    got[0][4] = np.nan
    assert wrong_elements(EXCHANGES["all_reduce"], [given_], [got]) == 1


def test_a_result_of_another_shape_is_wrong_altogether() -> None:
    given_, got = done(EXCHANGES["all_reduce"], operands("f32"))
    got[3] = got[3][:-1]
    assert wrong_elements(EXCHANGES["all_reduce"], [given_], [got]) == 8


SUM = """HloModule m, num_partitions=2
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
ENTRY e { a = f32[4] parameter(0)
 ROOT s = f32[4] all-reduce(a), replica_groups={}, channel_id=1, use_global_device_ids=true, to_apply=add }"""


def test_a_session_tells_its_checker_of_every_exchange() -> None:
    plan = plan_of(hlo_program(SUM))
    session = session_of(plan)
    session.checker = session.make_checker()
    session.load_slot(plan.main.inputs[0], Slab((0, 1), np.ones((2, 4), np.float32)))
    for step in plan.main.steps:
        session.execute(step)
    (step,) = (step for step in plan.main.steps if step.exchange is not None)
    assert session.checker.wrong == {step.index: 0}


def test_a_step_of_some_ranks_only_is_not_compared() -> None:
    plan = plan_of(hlo_program(SUM))
    (step,) = (step for step in plan.main.steps if step.exchange is not None)
    checker = Checker(plan.ranks + 1)
    checker.check(step, (0, 1), [], [], None)
    assert checker.wrong == {}
