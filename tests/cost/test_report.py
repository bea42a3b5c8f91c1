"""What follows from a schedule: exposed communication, idle time, executions, and what the numbers leave open."""

from __future__ import annotations

import json

import pytest

from dtir.cost.report import make_report
from dtir.cost.report_json import tree
from tests.cost.programs import Sketch, schedule


def report(made: Sketch, **given: float):
    return make_report(schedule(made.done(), given_s=given))


def test_communication_that_nothing_hides_is_exposed() -> None:
    """a 3 s, then r 2 s, then b 1 s on both ranks: 4 of 6 s are computing."""
    made = Sketch(x=2)
    made.work("a")
    made.reduce("r", after=("a",))
    made.work("b", after=("r",))
    found = report(made, a=3.0, r=2.0, b=1.0)
    assert found.made.makespan_s == 6
    assert found.exposed_communication_s == pytest.approx(2)
    assert found.bubble_fraction == 0


def test_communication_behind_work_is_not_exposed() -> None:
    """r runs while b does: nothing waits for it."""
    made = Sketch(x=2)
    made.work("a")
    made.reduce("r", after=("a",))
    made.work("b", after=("a",))
    found = report(made, a=3.0, r=2.0, b=2.5)
    assert found.made.makespan_s == 5.5
    assert found.exposed_communication_s == pytest.approx(0)


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (2, 4), (4, 8)])
def test_the_bubble_of_a_pipeline(stages: int, microbatches: int) -> None:
    """p - 1 of m + p - 1 slots are idle on every stage (SEMANTICS 3.6), with transfers that take no time."""
    made = Sketch(pp=stages)
    given: dict[str, float] = {}
    for micro in range(microbatches):
        for stage in range(stages):
            before = (f"s{stage - 1}.{micro}",) if stage else ()
            made.work(f"f{stage}.{micro}", ranks=(stage,), after=before)
            given[f"f{stage}.{micro}"] = 1.0
            if stage + 1 < stages:
                made.send(f"s{stage}.{micro}", stage, stage + 1, after=(f"f{stage}.{micro}",))
                given[f"s{stage}.{micro}"] = 0.0
    found = make_report(schedule(made.done(), given_s=given))
    assert found.made.makespan_s == microbatches + stages - 1
    assert found.bubble_fraction == pytest.approx((stages - 1) / (microbatches + stages - 1))


def test_a_program_that_takes_no_time_has_no_bubble() -> None:
    made = Sketch(x=2)
    made.work("a")
    found = report(made, a=0.0)
    assert (found.bubble_fraction, found.exposed_communication_s) == (0, 0)


def test_rounds_of_a_loop_are_counted() -> None:
    made = Sketch(x=2)
    body = made.region("body")
    body.reduce("r")
    made.loop("loop", body, 5)
    found = report(made, r=2.0)
    numbers = {task.name: number for number, _, task in found.made.numbered()}
    assert found.executions[numbers["r"]] == 5
    assert found.counted[numbers["r"]] == 5
    assert found.made.makespan_s == 10


def test_what_is_open_is_said() -> None:
    made = Sketch(x=2)
    body = made.region("body")
    body.work("inside")
    made.loop("loop", body, None)
    made.branch("either", made.region("left"), made.region("right"))
    made.work("nobody_knows")
    found = report(made, inside=1.0)
    notes = " / ".join(found.notes)
    assert found.unknown == 1
    assert "1 × no known time, counted as nothing: operation demo.nobody_knows" in notes
    assert "loop whose trip count the data decide: counted once" in notes
    assert "branch that the data choose: the dearest is counted" in notes
    assert tree(found)["complete"] is False


def test_the_tree_is_plain_data() -> None:
    made = Sketch(x=2)
    made.work("a")
    made.reduce("r", after=("a",))
    whole = tree(report(made, a=1.0, r=1.0))
    assert json.loads(json.dumps(whole, allow_nan=False)) == whole
    assert whole["planned"] is True
    assert whole["makespan_s"] == 2
    assert [item["name"] for item in whole["critical_path"]] == ["a", "r"]
