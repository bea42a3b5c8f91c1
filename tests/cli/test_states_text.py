from __future__ import annotations

from dtir.cli.states_text import VALUES_SHOWN, States, layout_text
from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR
from dtir.schema import Diagnostic
from dtir.verify import verify

PROGRAM = """
schema: dtir-program/1
name: bias
mesh: {axes: [[dp, 2], [tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[dp], [tp]]}
- {id: p, shape: [4], dims: [[dp]], partial: {tp: sum}}
- {id: y, shape: [4], dims: [[dp]]}
tasks:
- {id: t1, kind: local, op: sum, in: [x], out: [p], dims: [1]}
- {id: t2, kind: local, op: relu, in: [p], out: [y]}
inputs: [x]
outputs: [y]
"""


def program() -> DistributedTaskIR:
    found = read_programs(PROGRAM)[0].program
    assert found is not None
    return found


def test_a_finding_about_a_layout_shows_the_states_before_and_after_its_task() -> None:
    made = program()
    (finding,) = [item for item in verify(made) if item.code == "partial.nonlinear"]
    assert States.of(made).lines(finding) == [
        "before  p: f32[4], dim 0 split over dp, pending sum over tp",
        "after   y: f32[4], dim 0 split over dp, replicated over tp",
    ]


def test_a_finding_about_order_or_no_task_shows_none() -> None:
    made = program()
    task = str(made.tasks[0].id)
    assert States.of(made).lines(Diagnostic("order.mismatch", "no", subject=(task,))) == []
    assert States.of(made).lines(Diagnostic("partial.dropped", "no", subject=("tp",))) == []


def test_many_operands_are_counted_not_dropped() -> None:
    made = program()
    task = made.tasks[0]
    many = States({str(task.id): task}, {value.id: value for value in made.values})
    assert many.lines(Diagnostic("partial.dropped", "no", subject=(str(task.id),)))[0].startswith(
        "before  x: f32[4, 6]"
    )
    lines = many._side("before", [made.values[0].id] * (VALUES_SHOWN + 3))
    assert lines[-1].strip() == "and 3 more values"


def test_confined_varying_and_uneven_values_say_so() -> None:
    text = """
schema: dtir-program/1
name: odd
mesh: {axes: [[dp, 2], [pp, 2]]}
values:
- {id: a, shape: [5], dims: [[dp]], sizes: {0: [3, 2]}, at: {pp: 1}}
- {id: b, shape: [5], dims: [[]], varying: [dp]}
tasks: [{id: t, kind: local, op: neg, in: [a], out: [b]}]
inputs: [a]
outputs: [b]
"""
    made = read_programs(text)[0].program
    assert made is not None
    assert [layout_text(value) for value in made.values] == [
        "f32[5], dim 0 split over dp, dim 0 in shards of 3, 2, only at pp=1",
        "f32[5], per rank over dp, replicated over pp",
    ]
