"""Communication as lanes: columns, what is stuck, what is never reached, and the circle."""

from __future__ import annotations

from pathlib import Path

from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR
from dtir.verify.lanes import MOST_STEPS, Lanes, Reach, lanes_of


def corpus(shared_data: Path, prefix: str, *, fixed: bool = False) -> DistributedTaskIR:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    program = next(read.program for read in read_programs(text, fixed=fixed) if read.name.startswith(prefix))
    assert program is not None
    return program


def reach(lanes: Lanes) -> list[list[Reach]]:
    return [[step.reach for step in lane.steps] for lane in lanes.lanes]


def test_members_of_what_takes_place_stand_in_one_column(shared_data: Path) -> None:
    lanes = lanes_of(corpus(shared_data, "C069", fixed=True))
    assert lanes is not None
    assert not lanes.circle
    for op in lanes.ops.values():
        columns = {step.column for lane in lanes.lanes for step in lane.steps if op.op in step.ops}
        assert len(columns) == 1
        assert op.done


def test_whoever_waits_is_stuck_and_what_follows_is_never_reached(shared_data: Path) -> None:
    lanes = lanes_of(corpus(shared_data, "C069"))
    assert lanes is not None
    assert reach(lanes) == [[Reach.STUCK, Reach.NEVER]] * 2
    assert [(link.rank, link.waits_for) for link in lanes.circle] == [(0, 1), (1, 0)]
    assert lanes.stuck == 2


def test_buffers_let_a_ring_of_sends_through(shared_data: Path) -> None:
    program = corpus(shared_data, "C068")
    waiting, buffered = lanes_of(program), lanes_of(program, buffered=True)
    assert waiting is not None
    assert buffered is not None
    assert [link.waits_for for link in waiting.circle] == [1, 2, 3, 0]
    assert not buffered.circle
    assert buffered.stuck == 0


def test_a_rank_that_never_comes_is_absent_from_its_operation(shared_data: Path) -> None:
    lanes = lanes_of(corpus(shared_data, "C071"))
    assert lanes is not None
    assert [(op.members, op.absent) for op in lanes.ops.values() if op.absent] == [((0,), (1,))]


LONG = """
schema: dtir-program/1
name: long
mesh: {{axes: [[tp, 2]]}}
values:
{values}
tasks:
{tasks}
inputs: [v0]
outputs: [v{count}]
"""


def test_a_long_program_is_shown_around_its_task() -> None:
    count = 100
    values = "\n".join(f"- {{id: v{number}, shape: [4], dims: [[]]}}" for number in range(count + 1))
    tasks = "\n".join(
        f"- {{id: t{number}, kind: collective, coll: all_reduce, in: [v{number}], out: [v{number + 1}], axes: [tp], reduction: max}}"
        for number in range(count)
    )
    (read,) = read_programs(LONG.format(values=values, tasks=tasks, count=count))
    assert read.program is not None
    lanes = lanes_of(read.program, tasks=[50])
    assert lanes is not None
    for lane in lanes.lanes:
        assert len(lane.steps) == MOST_STEPS
        assert lane.before + lane.after + MOST_STEPS == count
        assert 50 in {lanes.ops[op].task for step in lane.steps for op in step.ops}
