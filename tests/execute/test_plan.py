"""Plans: what is found before anything is started, planned bytes, group numbers, memory."""

from __future__ import annotations

import numpy as np
import pytest

from dtir.execute import ExecPlan, make_plan
from dtir.execute.compare import bus_factor, collective_rows
from dtir.execute.memory import memory_problem, needed_bytes, text_bytes
from dtir.execute.ready import local_problems
from dtir.execute.record import Columns
from dtir.execute.steps import Form, StepKind
from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    DistributedTaskIR,
    ReduceScatter,
    ReductionKind,
)
from dtir.schema.result import Err
from tests.helpers.running import chain, collective_task, hlo_program, per_rank_value, plan_of, rank_mesh


def single(
    spec: CollectiveSpecVariant, before: tuple[int, ...], after: tuple[int, ...], ranks: int = 4
) -> DistributedTaskIR:
    mesh = rank_mesh(ranks)
    values = [per_rank_value("x", mesh, before, "f32"), per_rank_value("y", mesh, after, "f32")]
    name = type(spec).__name__
    names = {"AllReduce": "all-reduce", "AllGather": "all-gather", "ReduceScatter": "reduce-scatter", "AllToAll": "all-to-all",
             "Broadcast": "collective-broadcast", "CollectivePermute": "collective-permute"}  # fmt: skip
    return chain(mesh, values, [collective_task(names[name], spec, "x", "y")])


def errors(program: DistributedTaskIR) -> list[str]:
    found = make_plan(program)
    return [f"{item.code}: {item.message}" for item in found.error.errors] if isinstance(found, Err) else []


WORLD = (0, 1, 2, 3)
SUM = ReductionKind.SUM


@pytest.mark.parametrize(
    ("spec", "before", "after", "size", "sent"),
    [
        # n = 4 ranks, S as in nccl-tests, and what each rank sends at least (SEMANTICS 3.1).
        (AllReduce(WORLD, 0, SUM), (8,), (8,), 32, [2 * 3 * 32 // 4] * 4),
        (ReduceScatter(WORLD, 0, SUM, dim=0), (8,), (2,), 32, [3 * 32 // 4] * 4),
        (AllGather(WORLD, 0, dim=0), (8,), (32,), 128, [3 * 32] * 4),
        (AllToAll(WORLD, 0, split_dim=0, concat_dim=0), (8,), (8,), 32, [3 * 32 // 4] * 4),
        (Broadcast(WORLD, 0, root=2), (8,), (8,), 32, [0, 0, 3 * 32, 0]),
        (CollectivePermute(WORLD, 0, pairs=((0, 1), (1, 2), (3, 3))), (8,), (8,), 32, [32, 32, 0, 0]),
        (AllReduce(WORLD, 0, SUM, groups=((0, 1), (2, 3))), (8,), (8,), 32, [2 * 1 * 32 // 2] * 4),
    ],
)
def test_planned_bytes(
    spec: CollectiveSpecVariant, before: tuple[int, ...], after: tuple[int, ...], size: int, sent: list[int]
) -> None:
    (step,) = plan_of(single(spec, before, after)).main.steps
    assert step.planned.message_bytes == size
    assert [step.planned.sent_bytes.get(rank, 0) for rank in range(4)] == sent
    assert step.planned.total_bytes == sum(sent)


def test_groups_have_one_number_in_the_whole_plan() -> None:
    text = """HloModule m, num_partitions=4
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
f { p = f32[2] parameter(0)
 ROOT r = f32[2] all-reduce(p), replica_groups={{2,3},{1,0}}, channel_id=2, use_global_device_ids=true, to_apply=add }
ENTRY e { a = f32[2] parameter(0)
 b = f32[2] all-reduce(a), replica_groups={{0,1},{2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
 ROOT c = f32[2] call(b), to_apply=f }"""
    plan = plan_of(hlo_program(text))
    assert plan.groups == ((0, 1), (2, 3), (1, 0))
    numbers = {
        step.name: step.exchange.numbers for scope in plan.scopes for step in scope.steps if step.exchange is not None
    }
    assert numbers["b"] == (0, 1)
    (inside,) = (found for name, found in numbers.items() if name != "b")
    assert inside == (1, 2)


def test_steps_are_numbered_through_the_regions() -> None:
    plan = plan_of(hlo_program(LOOP))
    indices = [step.index for scope in plan.scopes for step in scope.steps]
    assert indices == list(range(len(indices)))
    kinds = {step.kind for step in plan.main.steps}
    assert StepKind.LOOP in kinds


LOOP = """HloModule m
body { p = (s32[], f32[1024]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[1024] get-tuple-element(p), index=1
 y = f32[1024] sine(x)
 z = f32[1024] add(x, y)
 one = s32[] constant(1)
 j = s32[] add(i, one)
 ROOT t = (s32[], f32[1024]) tuple(j, z) }
cond { p = (s32[], f32[1024]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(3)
 ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { a = f32[1024] parameter(0)
 z = s32[] constant(0)
 t = (s32[], f32[1024]) tuple(z, a)
 w = (s32[], f32[1024]) while(t), condition=cond, body=body
 ROOT r = f32[1024] get-tuple-element(w), index=1 }"""


def test_memory_is_that_of_live_values() -> None:
    """A chain of a hundred steps holds two values at a time; what a region holds is on top."""
    lines = "\n".join(f" v{number} = f32[1024] sine(v{number - 1})" for number in range(1, 100))
    text = "HloModule m\nENTRY e { v0 = f32[1024] parameter(0)\n" + lines + "\n ROOT r = f32[1024] sine(v99) }"
    straight = plan_of(hlo_program(text))
    assert straight.peak_bytes == 2 * 4096
    looped = plan_of(hlo_program(LOOP))
    # The state before and after, and x, y and z inside.
    assert 3 * 4096 <= looped.peak_bytes <= 6 * 4096
    assert needed_bytes(straight, 4) == 4 * straight.peak_bytes * 3 // 2
    assert memory_problem(straight, 4, 4 * 3 * 4096) is None
    problem = memory_problem(straight, 4, 4 * 3 * 4096 - 1)
    assert problem is not None
    assert problem.message == "4 ranks need about 48.0 KiB, allowed are 48.0 KiB"


def test_bytes_for_people() -> None:
    assert [text_bytes(number) for number in (0, 1023, 1024, 1536, 3 * 2**30)] == [
        "0 B", "1023 B", "1.0 KiB", "1.5 KiB", "3.0 GiB",
    ]  # fmt: skip


# -- what stands against a plan ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "before", "after", "message"),
    [
        (AllGather(WORLD, 0, dim=0), (8,), (16,), "all_gather of [8] over 4 ranks gives [32], declared [16]"),
        (ReduceScatter(WORLD, 0, SUM, dim=0), (6,), (1,), "6 elements cannot be scattered evenly over 4 ranks"),
        (AllReduce(WORLD, 0, SUM), (8,), (4,), "all_reduce of [8] over 4 ranks gives [8], declared [4]"),
        (AllToAll(WORLD, 0, split_dim=0, concat_dim=1), (8, 2), (8, 2), "gives [2, 8], declared [8, 2]"),
    ],
)
def test_shapes_that_a_collective_does_not_give(
    spec: CollectiveSpecVariant, before: tuple[int, ...], after: tuple[int, ...], message: str
) -> None:
    (found,) = errors(single(spec, before, after))
    assert found.startswith("run.placement: ")
    assert message in found


def test_every_unknown_type_is_said_once() -> None:
    mesh = rank_mesh(2)
    kinds = ("f32", "f7", "f7", "q8", "f32")
    values = [per_rank_value(f"v{number}", mesh, (2,), kind) for number, kind in enumerate(kinds)]
    tasks = [
        collective_task(f"all-reduce.{number}", AllReduce((0, 1), 0, SUM), f"v{number}", f"v{number + 1}")
        for number in range(4)
    ]
    found = errors(chain(mesh, values, tasks))
    assert found == [
        "run.dtype: element type 'f7' is not known to the executors",
        "run.dtype: element type 'q8' is not known to the executors",
    ]


def test_unknown_operations_are_counted() -> None:
    lines = "\n".join(
        f' v{number} = f32[2] custom-call(v{number - 1}), custom_call_target="kernel"' for number in range(1, 9)
    )
    text = "HloModule m\nENTRY e { v0 = f32[2] parameter(0)\n" + lines + "\n ROOT r = f32[2] sine(v8) }"
    (found,) = local_problems(plan_of(hlo_program(text)))
    assert found.code == "run.unknown_op"
    assert found.message.endswith("8 tasks use it: v1, v2, v3, ... (5 more)")


def test_a_global_module_is_undivided() -> None:
    text = """HloModule m, num_partitions=2
ENTRY e { a = f32[4] parameter(0), sharding={devices=[2]<=[2]}
 s = f32[4] custom-call(a), custom_call_target="Sharding", sharding={replicated}
 ROOT r = f32[4] negate(s) }"""
    plan = plan_of(hlo_program(text))
    assert plan.form is Form.UNDIVIDED
    assert plan.main.slots[plan.main.inputs[0]].shape == (4,)
    assert local_problems(plan) == []


# -- rows of a record -----------------------------------------------------------------------------------------------------------


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert bus_factor("all_reduce", 4) == 1.5
    assert [bus_factor(kind, 4) for kind in ("all_gather", "reduce_scatter", "all_to_all")] == [0.75] * 3
    assert [bus_factor(kind, 4) for kind in ("broadcast", "collective_permute", "peer_transfer")] == [1.0] * 3


def columns(plan: ExecPlan, *rows: tuple[int | None, int, int, int], sent: int | None = None) -> Columns:
    found = Columns()
    for rank, repetition, start, end in rows:
        found.add(plan.main.steps[0].index, rank, repetition, start, end, sent)
    return found


def test_times_of_a_step_that_all_ranks_note() -> None:
    """From the last to arrive to the last to leave; what others waited is told apart."""
    plan = plan_of(single(AllReduce((0, 1), 0, SUM), (1000,), (1000,), 2))
    noted = columns(plan, (0, 0, 0, 9_000), (1, 0, 4_000, 8_000), (0, 1, 0, 6_000), (1, 1, 0, 7_000), sent=2000)
    (row,) = collective_rows(plan, noted, 2)
    assert (row.executions, row.time_us, row.time.min_us) == (1, 6.0, 5.0)
    assert row.wait_us == np.median([2.0, 0.0])
    assert row.time.iqr_us == 1.0
    assert row.algbw == 4000 / 6000
    assert row.busbw == row.algbw
    assert (row.planned_bytes, row.measured_bytes) == (2 * 4000, 4000)


def test_nothing_is_made_up_for_what_did_not_run() -> None:
    plan = plan_of(single(AllReduce(WORLD, 0, SUM), (8,), (8,)))
    (row,) = collective_rows(plan, Columns(), 1)
    assert (row.time_us, row.algbw, row.busbw, row.measured_bytes, row.wait_us) == (None,) * 5
    assert (row.executions, row.planned_bytes) == (1, 192)
    assert row.error_percent is None
