"""Chrome traces: well formed, planned and measured told apart, nothing left out without saying so."""

from __future__ import annotations

import json
from typing import Any

from dtir.cost.trace import COMMUNICATION, COMPUTE, MEASURED, Measured, chrome_trace
from tests.cost.programs import Sketch, schedule


def sketch() -> Sketch:
    made = Sketch(x=3)
    for rank, name in enumerate("abc"):
        made.work(name, ranks=(rank,))
    made.reduce("r", after=("a", "b", "c"))
    return made


GIVEN = {"a": 1.0, "b": 3.0, "c": 2.0, "r": 0.5}


def events(text: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == kind]


def test_every_span_is_an_event_of_its_ranks() -> None:
    found = events(chrome_trace(schedule(sketch().done(), given_s=GIVEN)), "X")
    shown = {(event["name"], event["pid"], event["tid"]): (event["ts"], event["dur"]) for event in found}
    assert shown == {
        ("a", 0, COMPUTE): (0, 1e6),
        ("b", 1, COMPUTE): (0, 3e6),
        ("c", 2, COMPUTE): (0, 2e6),
        **{("r", rank, COMMUNICATION): (3e6, 5e5) for rank in range(3)},
    }
    assert all(event["args"]["planned"] is True for event in found)
    waits = {event["pid"]: event["args"]["waited_us"] for event in found if event["name"] == "r"}
    assert waits == {0: 2e6, 1: 0, 2: 1e6}


def test_members_of_a_group_are_tied_by_flows() -> None:
    text = chrome_trace(schedule(sketch().done(), given_s=GIVEN))
    begin, end = events(text, "s"), events(text, "f")
    assert sorted(event["id"] for event in begin) == sorted(event["id"] for event in end)
    assert {event["pid"] for event in end} == {1, 2}


def test_ranks_and_threads_have_names_and_planned_is_said() -> None:
    text = chrome_trace(schedule(sketch().done(), given_s=GIVEN))
    names = {event["pid"]: event["args"]["name"] for event in events(text, "M") if event["name"] == "process_name"}
    assert names == {rank: f"planned rank {rank}" for rank in range(3)}
    assert json.loads(text)["otherData"]["planned_with"].startswith("paper (model")


def test_measured_steps_stand_beside_and_start_at_zero() -> None:
    steps = [Measured("r", 0, 100.0, 100.5), Measured("a", 1, 99.0, 99.25, communicates=False)]
    text = chrome_trace(schedule(sketch().done(), given_s=GIVEN), steps)
    found = {event["name"]: event for event in events(text, "X") if event["pid"] >= MEASURED}
    assert (found["r"]["pid"], found["r"]["tid"], found["r"]["ts"], found["r"]["dur"]) == (MEASURED, 1, 1e6, 5e5)
    assert (found["a"]["pid"], found["a"]["tid"], found["a"]["ts"]) == (MEASURED + 1, 0, 0)
    assert all(event["args"]["planned"] is False for event in found.values())


def test_loops_say_for_how_many_rounds_they_stand() -> None:
    made = Sketch(x=1)
    body = made.region("body")
    body.work("a")
    made.loop("loop", body, 5)
    found = {event["name"]: event for event in events(chrome_trace(schedule(made.done(), given_s={"a": 2.0})), "X")}
    assert found["a"]["args"]["stands_for_executions"] == "5"
    assert (found["further rounds of loop"]["ts"], found["further rounds of loop"]["dur"]) == (2e6, 8e6)


def test_ranks_beyond_the_limit_are_counted() -> None:
    whole = Sketch(x=500)
    whole.work("a")
    text = chrome_trace(schedule(whole.done(), given_s={"a": 1.0}), most_ranks=10)
    assert len(events(text, "X")) == 10
    assert json.loads(text)["otherData"]["planned_ranks_left_out"] == 490


def test_a_trace_without_a_plan_holds_what_was_measured() -> None:
    text = chrome_trace(None, [Measured("r", 0, 1.0, 2.0)])
    assert [event["name"] for event in events(text, "X")] == ["r"]
