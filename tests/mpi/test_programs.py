"""Whole programs over processes: the same bits as on one process, transfers, reshards and control flow included."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from dtir.execute import ExecPlan, ExecutionError, Slab, make_plan
from dtir.execute.accumulate import error_bound
from dtir.execute.data import generate_inputs
from dtir.execute.ready import local_problems
from dtir.execute.values import Held, rows
from dtir.importers.yaml import read_programs
from dtir.ir import ReductionKind, ValueRole
from dtir.schema.result import Ok
from tests.execute.test_contract import random_arrays, result_shape, spec_of
from tests.execute.test_updates import SLICE, ragged_text
from tests.helpers.mpi_pool import run_in_pool
from tests.helpers.mpi_runs import dtir, loop
from tests.helpers.running import (
    chain,
    collective_task,
    hlo_program,
    per_rank_value,
    plan_of,
    rank_mesh,
    run_slabs,
)

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(280)]


def same(found: Sequence[Held], wanted: Sequence[Held]) -> bool:
    return len(found) == len(wanted) and all(
        list(one.ranks) == list(other.ranks)
        and [np.asarray(row).tobytes() for row in rows(one)] == [np.asarray(row).tobytes() for row in rows(other)]
        for one, other in zip(found, wanted, strict=True)
    )


def result(run: Callable[..., list[Held]], *arguments: object, **options: object) -> list[Held] | str:
    """What comes out, or the message of the error."""
    try:
        return run(*arguments, **options)
    except ExecutionError as error:
        return str(error)


def agree(plan: ExecPlan, held: Sequence[Held], processes: int) -> bool:
    wanted = result(run_slabs, plan, held)
    found = result(run_in_pool, plan, held, processes=processes)
    if isinstance(wanted, str) or isinstance(found, str):
        return wanted == found
    return same(found, wanted)


@pytest.mark.parametrize("fixed", [True, False], ids=["right", "faulty"])
def test_programs_of_the_corpus_give_the_bits_of_one_process(shared_data: Path, fixed: bool) -> None:
    """Peer transfers, reshards, halo exchanges, routes, uneven shards, pipelines; faults included."""
    text = (shared_data / "bug_corpus.yaml").read_text()
    compared = 0
    for item in read_programs(text, fixed=fixed):
        planned = make_plan(item.program, algorithm="ordered") if item.program is not None else None
        if not isinstance(planned, Ok) or local_problems(planned.value):
            continue
        plan = planned.value
        held = [generate_inputs(plan, 0).held[slot] for slot in plan.main.inputs]
        for processes in sorted({min(plan.ranks, 2), min(plan.ranks, 3)}):
            assert agree(plan, held, processes), (item.name, processes)
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("stated", [True, False], ids=["turns stated", "data decide"])
def test_loops_run_as_often_as_in_one_process(processes: int, stated: bool) -> None:
    plan = make_plan(hlo_program(loop(3, ranks=4, stated=stated)), algorithm="ordered").or_raise()
    arrays = random_arrays(4, (8,), "f32")
    assert agree(plan, [Slab((0, 1, 2, 3), np.stack(arrays))], processes)


@pytest.mark.parametrize("processes", [2, 3])
def test_ranks_that_leave_a_loop_early_give_the_same_error(processes: int) -> None:
    plan = make_plan(hlo_program(loop(2, ranks=4, by_rank=True)), algorithm="ordered").or_raise()
    held = [Slab((0, 1, 2, 3), np.zeros((4, 8), np.float32))]
    with pytest.raises(ExecutionError, match="ranks 1, 2, 3 wait for ranks 0, which never arrive") as caught:
        run_in_pool(plan, held, processes=processes)
    assert caught.value.code == "run.deadlock"


BRANCHES = """HloModule branches, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%low (x: f32[5]) -> f32[5] {
  %x = f32[5] parameter(0)
  ROOT %r = f32[5] all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%sum
}

%high (x: f32[5]) -> f32[5] {
  %x = f32[5] parameter(0)
  %r = f32[5] all-reduce(%x), channel_id=2, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%sum
  ROOT %n = f32[5] negate(%r)
}

ENTRY %main (x: f32[5]) -> f32[5] {
  %x = f32[5] parameter(0), sharding={replicated}
  %id = u32[] partition-id()
  %c = u32[] constant(PIVOT)
  %p = pred[] compare(%id, %c), direction=LT
  ROOT %y = f32[5] conditional(%p, %x, %x), true_computation=%low, false_computation=%high
}
"""


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_ranks_in_different_branches_exchange_within_theirs(processes: int) -> None:
    plan = make_plan(hlo_program(BRANCHES.replace("PIVOT", "2")), algorithm="ordered").or_raise()
    held = [Slab((0, 1, 2, 3), np.stack(random_arrays(4, (5,), "f32")))]
    assert not isinstance(result(run_slabs, plan, held), str)
    assert agree(plan, held, processes)


@pytest.mark.parametrize("processes", [2, 4])
def test_a_group_that_is_torn_apart_by_a_branch_is_an_error_everywhere(processes: int) -> None:
    plan = make_plan(hlo_program(BRANCHES.replace("PIVOT", "1")), algorithm="ordered").or_raise()
    held = [Slab((0, 1, 2, 3), np.stack(random_arrays(4, (5,), "f32")))]
    with pytest.raises(ExecutionError, match="which never arrive: they took another branch"):
        run_in_pool(plan, held, processes=processes)


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "bf16", "f16"])
def test_native_reductions_are_within_the_bound_of_another_order(kind: str, dtype: str, processes: int) -> None:
    groups = ((0, 1, 2, 3),)
    arrays = random_arrays(4, (8, 3), dtype)
    mesh = rank_mesh(4)
    source = per_rank_value("a", mesh, (8, 3), dtype, ValueRole.INPUT)
    target = per_rank_value("b", mesh, result_shape(kind, (8, 3), 4), dtype)
    task = collective_task(kind.replace("_", "-"), spec_of(kind, groups), "a", "b")
    plan = plan_of(chain(mesh, (source, target), (task,)))
    held = [Slab((0, 1, 2, 3), np.stack(arrays))]
    (wanted,) = run_slabs(plan, held)
    (found,) = run_in_pool(plan, held, processes=processes, algorithm="native")
    bound = error_bound(np, np.stack(arrays), ReductionKind.SUM)
    bounds = [bound] * 4 if kind == "all_reduce" else np.split(bound, 4, axis=0)
    for one, other, most in zip(rows(found), rows(wanted), bounds, strict=True):
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
        assert (apart <= most).all(), float(apart.max())


FILES = (("ppermute_zoo", "8"), ("scan_layers_dp2tp4_fwdbwd", "4"), ("cond_collective", "4"), ("all_to_all_zoo", "2"))


@pytest.mark.parametrize(("name", "processes"), FILES)
def test_real_modules_give_what_jax_gave(shared_data: Path, name: str, processes: str) -> None:
    base = shared_data / "inputs" / "hlo_jax" / "cpu8" / name
    hlo = base.with_name(f"{name}.spmd.hlo")
    done = dtir("run", str(hlo), "--inputs", f"{base}.io.npz", "--backend", "mpi", "-n", processes, "--format", "json")
    assert done.returncode == 0, done.stderr + done.stdout[-500:]
    values = json.loads(done.stdout)["values"]
    assert values
    assert not any(value["wrong"] for value in values)


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("slices", [True, False], ids=["slices", "ragged"])
def test_collectives_whose_data_say_who_gets_what(processes: int, slices: bool) -> None:
    if slices:
        plan = plan_of(hlo_program(SLICE % "two"))
        shapes: list[tuple[int, ...]] = [(6, 2), (5, 5)]
        held = [
            Slab((0, 1, 2, 3), np.arange(4 * np.prod(shape), dtype=np.float32).reshape(4, *shape)) for shape in shapes
        ]
    else:
        plan = plan_of(hlo_program(ragged_text(3, 6, 10, [[0, 2, 1]])))
        rows_of = np.arange(36, dtype=np.float32).reshape(3, 6, 2)
        sizes = np.ones((3, 3), np.int32)
        places = np.asarray([[1, 1, 1], [3, 3, 3], [2, 2, 2]], np.int32)
        arrays = [rows_of, np.zeros((3, 10, 2), np.float32), sizes, sizes, places, sizes]
        held = [Slab((0, 1, 2), array) for array in arrays]
    assert not isinstance(result(run_slabs, plan, held), str)
    assert agree(plan, held, processes)
