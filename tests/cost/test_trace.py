"""Chrome traces: well formed, planned and measured told apart, nothing left out without saying so."""

from __future__ import annotations

import json
from typing import Any

from dtir.cost.trace import COMMUNICATION, COMPUTE, SIDE, Side, Slice, chrome_trace, planned_side
from tests.cost.programs import Sketch, schedule


def sketch() -> Sketch:
    made = Sketch(x=3)
    for rank, name in enumerate("abc"):
        made.work(name, ranks=(rank,))
    made.reduce("r", after=("a", "b", "c"))
    return made


GIVEN = {"a": 1.0, "b": 3.0, "c": 2.0, "r": 0.5}


def planned(most_ranks: int = 64) -> Side:
    return planned_side(schedule(sketch().done(), given_s=GIVEN), most_ranks=most_ranks)


def events(text: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == kind]


def test_every_span_is_an_event_of_its_ranks() -> None:
    found = events(chrome_trace([planned()]), "X")
    shown = {(event["name"], event["pid"], event["tid"]): (event["ts"], event["dur"]) for event in found}
    assert shown == {
        ("a", 0, COMPUTE): (0, 1e6),
        ("b", 1, COMPUTE): (0, 3e6),
        ("c", 2, COMPUTE): (0, 2e6),
        ("wait for r", 0, COMMUNICATION): (1e6, 2e6),
        ("wait for r", 2, COMMUNICATION): (2e6, 1e6),
        **{("r", rank, COMMUNICATION): (3e6, 5e5) for rank in range(3)},
    }
    assert all(event["args"]["planned"] is True for event in found)
    assert {event["cat"] for event in found} == {"compute", "wait", "transfer"}


def test_communication_says_its_task_group_and_bytes() -> None:
    (first, *_) = (event for event in events(chrome_trace([planned()]), "X") if event["name"] == "r")
    assert first["args"]["group"] == [0, 1, 2]
    assert first["args"]["kind"] == "all_reduce"
    assert first["args"]["bytes"] > 0
    assert first["args"]["task"]


def test_members_of_a_group_are_tied_by_flows() -> None:
    text = chrome_trace([planned()])
    begin, end = events(text, "s"), events(text, "f")
    assert sorted(event["id"] for event in begin) == sorted(event["id"] for event in end)
    assert {event["pid"] for event in begin} == {0}
    assert {event["pid"] for event in end} == {1, 2}
    # A flow binds to the slice that holds its moment on its thread.
    slices = [event for event in events(text, "X") if event["name"] == "r"]
    for event in (*begin, *end):
        assert any(
            (one["pid"], one["tid"]) == (event["pid"], event["tid"])
            and one["ts"] <= event["ts"] <= one["ts"] + one["dur"]
            for one in slices
        )


def test_only_members_of_one_group_are_tied() -> None:
    pairs = [Slice("r", rank, 0.0, 1.0, True, tie=(0, rank // 2)) for rank in range(4)]
    text = chrome_trace([Side("measured", "test", pairs)])
    tied = list(zip(events(text, "s"), events(text, "f"), strict=True))
    assert [(begin["pid"], end["pid"]) for begin, end in tied] == [(0, 1), (2, 3)]


def test_ranks_and_threads_have_names_and_planned_is_said() -> None:
    text = chrome_trace([planned()])
    names = {event["pid"]: event["args"]["name"] for event in events(text, "M") if event["name"] == "process_name"}
    assert names == {rank: f"planned rank {rank}" for rank in range(3)}
    threads = {
        (event["pid"], event["tid"]): event["args"]["name"] for event in events(text, "M") if "thread" in event["name"]
    }
    assert threads[2, COMPUTE] == "compute"
    assert threads[2, COMMUNICATION] == "communication"
    assert json.loads(text)["otherData"]["planned_with"].startswith("paper (model")


def test_measured_slices_come_first_and_start_at_zero() -> None:
    measured = Side("measured", "a record", [
        Slice("r", 0, 100.0, 100.5, True, 99.5),
        Slice("a", 1, 99.0, 99.25),
    ])  # fmt: skip
    text = chrome_trace([measured, planned()])
    found = {event["name"]: event for event in events(text, "X") if event["pid"] < SIDE}
    assert (found["r"]["pid"], found["r"]["tid"], found["r"]["ts"], found["r"]["dur"]) == (0, 1, 1.0, 0.5)
    assert (found["wait for r"]["ts"], found["wait for r"]["dur"]) == (0.5, 0.5)
    assert (found["a"]["pid"], found["a"]["tid"], found["a"]["ts"]) == (1, 0, 0)
    assert all(event["args"]["planned"] is False for event in found.values())
    others = [event for event in events(text, "X") if event["pid"] >= SIDE]
    assert all(event["args"]["planned"] is True for event in others)
    names = {event["pid"]: event["args"]["name"] for event in events(text, "M") if event["name"] == "process_name"}
    assert names[0] == "measured rank 0"
    assert names[SIDE] == "planned rank 0"


def test_loops_say_for_how_many_rounds_they_stand() -> None:
    made = Sketch(x=1)
    body = made.region("body")
    body.work("a")
    made.loop("loop", body, 5)
    side = planned_side(schedule(made.done(), given_s={"a": 2.0}))
    found = {event["name"]: event for event in events(chrome_trace([side]), "X")}
    assert found["a"]["args"]["stands_for_executions"] == "5"
    assert (found["further rounds of loop"]["ts"], found["further rounds of loop"]["dur"]) == (2e6, 8e6)


def test_ranks_beyond_the_limit_are_counted() -> None:
    whole = Sketch(x=500)
    whole.work("a")
    text = chrome_trace([planned_side(schedule(whole.done(), given_s={"a": 1.0}), most_ranks=10)])
    assert len(events(text, "X")) == 10
    assert json.loads(text)["otherData"]["planned_ranks_left_out"] == 490


def test_an_empty_side_is_a_trace() -> None:
    assert json.loads(chrome_trace([Side("measured", "nothing", [])]))["traceEvents"] == []
