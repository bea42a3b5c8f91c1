"""Bytes on the wire: what is planned is what is measured, for messages of our own; what the library adds is shown."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dtir.execute import Report, Request, make_plan, run_program, spread
from dtir.execute.wire_plan import planned_wire
from dtir.ir import DistributedTaskIR, ReductionKind, ValueRole
from dtir.schema.result import Ok
from tests.execute.test_contract import result_shape, spec_of
from tests.helpers.running import chain, collective_task, per_rank_value, rank_mesh

pytestmark = [pytest.mark.timeout(240)]

RANKS = 4
WORLD = ((0, 1, 2, 3),)
PAIRS = ((0, 2), (3, 1))
SHAPE = (8, 3)
ODD = (7, 3)
"""21 elements, which four processes cannot share evenly."""


def program(dtype: str = "f32") -> DistributedTaskIR:
    """Every collective over the world and over pairs, all of one input; and an all_reduce that does not divide."""
    mesh = rank_mesh(RANKS)
    source = per_rank_value("a", mesh, SHAPE, dtype, ValueRole.INPUT)
    odd = per_rank_value("odd", mesh, ODD, dtype, ValueRole.INPUT)
    values, tasks = [source, odd], []
    for groups, where in ((WORLD, "world"), (PAIRS, "pairs")):
        size = len(groups[0])
        for kind in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "permute"):
            name = f"{'collective-permute' if kind == 'permute' else kind.replace('_', '-')}.{where}"
            values.append(per_rank_value(name, mesh, result_shape(kind, SHAPE, size), dtype))
            tasks.append(collective_task(name, spec_of(kind, groups, ReductionKind.SUM), "a", name))
    values.append(per_rank_value("odd.sum", mesh, ODD, dtype))
    tasks.append(collective_task("all-reduce.odd", spec_of("all_reduce", WORLD), "odd", "odd.sum"))
    made = chain(mesh, values, tasks)
    return DistributedTaskIR(
        made.name, made.source_model_digest, made.mesh, made.values, made.tasks, (source.id, odd.id),
        tuple(value.id for value in values[2:]), header=made.header,
    )  # fmt: skip


def run(processes: int, algorithm: str, dtype: str = "f32", repetitions: int = 1) -> Report:
    from dtir.execute import Timing

    request = Request(backend="mpi", processes=processes, algorithm=algorithm, timing=Timing(repetitions, warmup=1))
    found = run_program(program(dtype), request)
    assert isinstance(found, Ok), [item.render() for item in found.error]
    assert found.value.record is not None, [item.render() for item in found.value.findings]
    return found.value


def measurable() -> None:
    from dtir.execute import load_backend

    if not load_backend("mpi").probe().capabilities.wire_bytes:
        pytest.skip("this MPI does not count what it sends")


@pytest.mark.mpi
@pytest.mark.parametrize(("processes", "dtype"), [(4, "f32"), (3, "bf16"), (2, "f32")])
def test_our_own_messages_are_planned_to_the_byte(processes: int, dtype: str) -> None:
    measurable()
    report = run(processes, "ordered", dtype, repetitions=2)
    assert {row.name: row.measured_bytes for row in report.collectives} == {
        row.name: row.planned_bytes for row in report.collectives
    }
    assert "run.bytes_differ" not in {item.code for item in report.findings}


@pytest.mark.mpi
def test_every_process_and_every_peer_is_told_apart() -> None:
    measurable()
    report = run(4, "ordered", repetitions=2)
    assert report.record is not None
    wired = planned_wire(report.plan, spread("mpi", RANKS, 4))
    by_process: Counter[tuple[int, int]] = Counter()
    for entry in report.record.wire:
        assert entry.process != entry.peer
        by_process[entry.step, entry.process] += entry.sent_bytes
    # Two repetitions; the one to warm up is not counted.
    wanted = {(step, process): 2 * size for step, issued in wired.items() for process, size in issued.sizes.items()}
    assert dict(by_process) == wanted
    rows = {row.name: row for row in report.collectives}
    step = next(entry.index for entry in report.record.steps if entry.name == "all-gather.world")
    to_each = {(item.process, item.peer): item.sent_bytes for item in report.record.wire if item.step == step}
    assert rows["all-gather.world"].measured_bytes == 12 * 96
    assert to_each == {(a, b): 2 * 96 for a in range(4) for b in range(4) if a != b}


@pytest.mark.mpi
def test_what_the_library_sends_beyond_the_least_is_shown() -> None:
    measurable()
    report = run(4, "native")
    more = {row.name for row in report.collectives if row.measured_bytes != row.planned_bytes}
    shown = {item.path[-1] for item in report.findings if item.code == "run.bytes_differ"}
    assert shown == more
    # No library can send less than what is needed.
    assert all((row.measured_bytes or 0) >= (row.planned_bytes or 0) for row in report.collectives)


def test_ranks_of_one_process_send_nothing_to_each_other() -> None:
    plan = make_plan(program(), algorithm="ordered").or_raise()
    one = planned_wire(plan, spread("mpi", RANKS, 1))
    assert all(issued.total_bytes == 0 and issued.exact for issued in one.values())


@pytest.mark.parametrize("algorithm", ["native", "ordered"])
def test_the_plan_of_a_rank_a_process_is_that_of_the_formulas(algorithm: str) -> None:
    """SEMANTICS 3.1: 2 (n-1) S in all for an all_reduce, (n-1) S for a reduce_scatter, all_to_all and broadcast."""
    plan = make_plan(program(), algorithm=algorithm).or_raise()
    wired = planned_wire(plan, spread("mpi", RANKS, RANKS))
    size = int(np.prod(SHAPE)) * 4
    names = {step.name: wired[step.index].total_bytes for step in plan.main.steps}
    assert names["all-reduce.world"] == 2 * 3 * size
    assert names["reduce-scatter.world"] == names["all-to-all.world"] == names["broadcast.world"] * 1 == 3 * size
    assert names["all-gather.world"] == 4 * 3 * size
    assert names["all-reduce.pairs"] == 2 * (2 * 1 * size)
    assert names["all-reduce.odd"] == 2 * 3 * 84
    assert names["collective-permute.world"] == 3 * size
    exact = {wired[step.index].exact for step in plan.main.steps if not step.name.startswith("collective-permute")}
    assert exact == {algorithm == "ordered"}


@pytest.mark.parametrize(("processes", "dtype"), [(4, "f32"), (3, "bf16")])
def test_what_the_library_gives_is_compared_with_the_reference(processes: int, dtype: str) -> None:
    """All ranks' results come together in the first process; it finds no element beyond rounding."""
    request = Request(backend="mpi", processes=processes, check=True)
    found = run_program(program(dtype), request)
    assert isinstance(found, Ok)
    assert {row.wrong for row in found.value.collectives} == {0}
    assert found.value.record is not None
    assert set(found.value.record.records.repetition) == {0}
