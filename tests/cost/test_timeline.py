"""The simulation against schedules worked out by hand, and against a simulation rank by rank."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.cost.schedule import Options, make_schedule
from dtir.cost.spans import Why
from dtir.presets.pipeline import PipelineKind, pipeline_program
from dtir.schema.result import Err
from tests.cost.programs import MACHINE, Sketch, schedule, times


def test_a_chain_takes_the_sum() -> None:
    sketch = Sketch(x=2)
    sketch.work("a")
    sketch.reduce("r", after=("a",))
    sketch.work("b", after=("r",))
    made = schedule(sketch.done(), given_s={"a": 2.0, "b": 3.0})
    assert made.makespan_s == 2 + 1 + 3
    assert times(made) == {
        (name, rank): span for rank in (0, 1) for name, span in {"a": (0, 2), "r": (2, 3), "b": (3, 6)}.items()
    }
    assert made.classes.count == 1


def test_communication_hides_behind_compute_that_does_not_need_it() -> None:
    sketch = Sketch(x=2)
    sketch.work("a")
    sketch.reduce("r", after=("a",))
    sketch.work("b", after=("a",))
    sketch.work("c", after=("b", "r"))
    given = {"a": 1.0, "b": 5.0, "c": 1.0, "r": 2.0}
    program = sketch.done()
    assert schedule(program, given_s=given).makespan_s == 7
    assert schedule(program, given_s=given, blocking=True).makespan_s == 9


def test_buckets_are_sent_one_after_the_other() -> None:
    """f_i = max(f_{i-1}, B_i) + c_i; what is exposed is f_last − B_last (SEMANTICS 3.5)."""
    sketch = Sketch(x=2)
    for number in range(4):
        sketch.work(f"b{number}", after=(f"b{number - 1}",) if number else ())
        sketch.reduce(f"r{number}", after=(f"b{number}",))
    ready, cost = [1.0, 2.0, 4.0, 5.0], [3.0, 1.0, 0.5, 2.5]
    given = {f"b{n}": ready[n] - (ready[n - 1] if n else 0.0) for n in range(4)}
    given |= {f"r{n}": cost[n] for n in range(4)}
    finish = 0.0
    for at, seconds in zip(ready, cost, strict=True):
        finish = max(finish, at) + seconds
    assert schedule(sketch.done(), given_s=given).makespan_s == finish


def test_a_collective_starts_when_its_last_participant_arrives() -> None:
    sketch = Sketch(x=4)
    for rank in range(4):
        sketch.work(f"a{rank}", ranks=(rank,))
    sketch.reduce("left", groups=((0, 1),), after=("a0", "a1"))
    sketch.reduce("all", after=("left", "a2", "a3"))
    made = schedule(sketch.done(), given_s={"a0": 1.0, "a1": 4.0, "a2": 9.0, "a3": 2.0, "left": 1.0, "all": 1.0})
    found = times(made)
    assert (found["left", 0], found["left", 1]) == ((4, 5), (4, 5))
    assert {found["all", rank] for rank in range(4)} == {(9, 10)}
    last = max(range(len(made.spans)), key=lambda place: made.spans.end[place])
    assert made.spans.why[last] == Why.ARRIVAL
    names = {number: task.name for number, _, task in made.numbered()}
    assert names[made.spans.task[made.spans.before[last]]] == "a2"


def test_streams_keep_their_order() -> None:
    # "late" is ready at once, but stands behind "early" on the communication stream.
    sketch = Sketch(x=2)
    sketch.work("a")
    sketch.reduce("early", after=("a",))
    sketch.reduce("late")
    made = schedule(sketch.done(), given_s={"a": 3.0, "early": 1.0, "late": 1.0})
    assert times(made)["late", 0] == (4, 5)


def test_issue_lists_say_the_order() -> None:
    sketch = Sketch(x=2)
    sketch.work("a")
    sketch.work("b")
    for rank in range(2):
        sketch.build.issue(rank, [sketch.tasks["b"], sketch.tasks["a"]])  # type: ignore[union-attr]
    found = times(schedule(sketch.done(), given_s={"a": 1.0, "b": 2.0}))
    assert (found["b", 0], found["a", 0]) == ((0, 2), (2, 3))


def test_orders_that_contradict_each_other_are_a_finding() -> None:
    sketch = Sketch(x=2)
    sketch.reduce("a")
    sketch.reduce("b")
    one, other = sketch.tasks["a"], sketch.tasks["b"]
    sketch.build.issue(0, [one, other])  # type: ignore[union-attr]
    sketch.build.issue(1, [other, one])  # type: ignore[union-attr]
    found = make_schedule(sketch.done(), MACHINE)
    assert isinstance(found, Err)
    (finding,) = found.error
    assert finding.code == "cost.order"
    assert set(finding.subject) == {str(one), str(other)}
    assert "a, b" in finding.message


def test_a_wrong_program_is_not_planned() -> None:
    sketch = Sketch(x=2)
    sketch.work("a", ranks=(7,))
    found = make_schedule(sketch.done(), MACHINE)
    assert isinstance(found, Err)
    assert [item.code for item in found.error] == ["rank.unknown"]


# -- regions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trips", [0, 1, 2, 7])
def test_a_loop_takes_its_body_as_often(trips: int) -> None:
    sketch = Sketch(x=2)
    body = sketch.region("body")
    body.work("a")
    body.reduce("r", after=("a",))
    sketch.work("before")
    sketch.loop("loop", body, trips, after=("before",))
    sketch.work("after", after=("loop",))
    made = schedule(sketch.done(), given_s={"a": 2.0, "r": 1.0, "before": 1.0, "after": 1.0})
    assert made.makespan_s == 1 + 3 * trips + 1


def test_loops_inside_loops_multiply() -> None:
    sketch = Sketch(x=2)
    inner = sketch.region("inner")
    inner.work("a")
    outer = sketch.region("outer")
    outer.loop("in", inner, 3)
    outer.work("b", after=("in",))
    sketch.loop("out", outer, 5)
    made = schedule(sketch.done(), given_s={"a": 2.0, "b": 1.0})
    assert made.makespan_s == 5 * (3 * 2 + 1)
    weight = {made.spans.times[place] for place in range(len(made.spans))}
    assert 15 in weight


def test_a_loop_of_unlike_ranks_finds_its_steady_state() -> None:
    # Rank 0 is late once, before the loop; inside, rank 1 is the slow one in every round.
    sketch = Sketch(x=2)
    sketch.work("late", ranks=(0,))
    body = sketch.region("body")
    body.work("fast", ranks=(0,))
    body.work("slow", ranks=(1,))
    body.reduce("r", after=("fast", "slow"))
    sketch.loop("loop", body, 4)
    made = schedule(sketch.done(), given_s={"late": 10.0, "fast": 1.0, "slow": 3.0, "r": 1.0})
    # First round: rank 0 comes at 11, then 1 of r; three more rounds of 3 + 1.
    assert made.makespan_s == 12 + 3 * 4


def test_what_is_still_sent_when_a_loop_begins_is_not_sent_in_every_round() -> None:
    sketch = Sketch(x=2)
    sketch.work("a")
    sketch.reduce("long", after=("a",))
    body = sketch.region("body")
    body.work("w")
    body.reduce("r", after=("w",))
    sketch.loop("loop", body, 3, after=("a",))
    made = schedule(sketch.done(), given_s={"a": 1.0, "long": 10.0, "w": 1.0, "r": 1.0})
    # The first round waits for `long` (until 11), the others do not.
    assert made.makespan_s == 12 + 2 * 2


def test_a_loop_without_a_trip_count_counts_once_or_as_it_is_said() -> None:
    sketch = Sketch(x=2)
    body = sketch.region("body")
    body.work("a")
    sketch.loop("loop", body, None)
    program = sketch.done()
    assert schedule(program, given_s={"a": 2.0}).makespan_s == 2
    assert schedule(program, given_s={"a": 2.0}, trips=6).makespan_s == 12


def test_a_call_runs_in_place_and_overlaps() -> None:
    sketch = Sketch(x=2)
    body = sketch.region("body")
    body.work("a")
    body.reduce("r", after=("a",))
    sketch.call("one", body)
    sketch.call("two", body)
    made = schedule(sketch.done(), given_s={"a": 2.0, "r": 1.0})
    # The reduction of the first call hides behind the work of the second.
    assert made.makespan_s == 2 + 2 + 1


@pytest.mark.parametrize("dear", [0, 1, 2])
def test_of_branches_the_dearest_is_taken(dear: int) -> None:
    sketch = Sketch(x=2)
    bodies = []
    for number in range(3):
        body = sketch.region(f"b{number}")
        body.work(f"w{number}")
        bodies.append(body)
    sketch.branch("if", *bodies)
    sketch.work("after", after=("if",))
    made = schedule(sketch.done(), given_s={"after": 1.0} | {f"w{n}": 5.0 if n == dear else 1.0 for n in range(3)})
    assert made.makespan_s == 6
    assert list(made.chosen.values()) == [dear]
    assert {name for name, _ in times(made)} == {f"w{dear}", "after"}


def test_loops_beyond_all_numbers_are_refused() -> None:
    sketch = Sketch(x=2)
    body = sketch.region("body")
    body.work("a")
    sketch.loop("loop", body, 10**200)
    found = make_schedule(sketch.done(), MACHINE, Options(given_s={"a": 1.0}))
    assert isinstance(found, Err)
    assert [item.code for item in found.error] == ["cost.too_large"]


def test_regions_that_nest_deeper_than_any_program_are_refused() -> None:
    sketch = Sketch(x=1)
    inner = sketch.region("r0")
    inner.work("a")
    for number in range(1, 300):
        outer = sketch.region(f"r{number}")
        outer.call(f"c{number}", inner)
        inner = outer
    sketch.call("main", inner)
    found = make_schedule(sketch.done(), MACHINE, Options(given_s={"a": 1.0}))
    assert isinstance(found, Err)
    assert [item.code for item in found.error] == ["cost.too_large"]


# -- pipelines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PipelineKind)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("forward", "backward"), [(1.0, 1.0), (1.0, 2.0)])
def test_bubbles_are_those_of_the_formulas(
    kind: PipelineKind, stages: int, groups: int, forward: float, backward: float
) -> None:
    """(p−1)/m of the ideal time for GPipe and 1F1B, (p−1)/(v·m) interleaved (SEMANTICS 3.6)."""
    chunks = 2 if kind is PipelineKind.INTERLEAVED else 1
    microbatches = stages * groups
    program = pipeline_program(kind, stages=stages, microbatches=microbatches, chunks=chunks)
    made = schedule(program, given_s={"forward": forward, "backward": backward, "transfer": 0.0})
    ideal = microbatches * chunks * (forward + backward)
    assert (made.makespan_s - ideal) / ideal == pytest.approx((stages - 1) / (chunks * microbatches))


# -- rank by rank ---------------------------------------------------------------------------------------------------------


@st.composite
def random_programs(draw: st.DrawFn) -> tuple[Any, dict[str, float]]:
    """Tasks on random ranks with random dependencies, and their times."""
    ranks = draw(st.integers(1, 4))
    sketch = Sketch(x=ranks)
    given_s: dict[str, float] = {}
    everyone = tuple(range(ranks))
    for number in range(draw(st.integers(1, 12))):
        name = f"t{number}"
        earlier = tuple(draw(st.sets(st.sampled_from(sorted(sketch.tasks)), max_size=3))) if sketch.tasks else ()
        given_s[name] = float(draw(st.integers(1, 5)))
        kind = draw(st.sampled_from(["work", "reduce", "send"]))
        if kind == "work":
            mine = draw(st.sets(st.sampled_from(everyone), min_size=1))
            sketch.work(name, after=earlier, ranks=tuple(sorted(mine)))
        elif kind == "reduce" and ranks > 1:
            shuffled = draw(st.permutations(everyone))
            cut = draw(st.integers(1, ranks - 1))
            sketch.reduce(name, after=earlier, groups=(tuple(shuffled[:cut]), tuple(shuffled[cut:])))
        elif kind == "send" and ranks > 1:
            source, destination = draw(st.permutations(everyone))[:2]
            sketch.send(name, source, destination, after=earlier)
        else:
            sketch.work(name, after=earlier)
    return sketch.done(), given_s


def simulate(program: Any, given_s: dict[str, float]) -> dict[tuple[str, int], tuple[float, float]]:
    """Rank by rank, with no classes: the definition of SEMANTICS 3.5 word for word."""
    ends: dict[tuple[Any, int], float] = {}
    owners: dict[Any, tuple[int, ...]] = {}
    free: dict[tuple[str, int], float] = {}
    found: dict[tuple[str, int], tuple[float, float]] = {}
    for task in program.tasks:
        tag = task.body_tag
        stream = "compute" if tag == "local-compute" else "communication"
        if tag == "collective":
            groups = task.body.spec.groups
        elif tag == "point-to-point":
            groups = (task.ranks,)
        else:
            groups = tuple((rank,) for rank in task.ranks)
        owners[task.id] = tuple(task.ranks)
        for group in groups:
            if len(group) == 1 and stream == "communication":
                rank = group[0]
                ends[task.id, rank] = max([_after(task, rank, ends, owners), free.get((stream, rank), 0.0)])
                ends[task.id, rank] = _after(task, rank, ends, owners)
                continue
            start = max(max(_after(task, rank, ends, owners), free.get((stream, rank), 0.0)) for rank in group)
            end = start + given_s[task.name]
            for rank in group:
                ends[task.id, rank] = free[stream, rank] = end
                found[task.name, rank] = (start, end)
    return found


def _after(task: Any, rank: int, ends: dict[tuple[Any, int], float], owners: dict[Any, tuple[int, ...]]) -> float:
    times_: list[float] = [0.0]
    for before in task.dependencies:
        mine = (before, rank)
        if task.body_tag != "local-compute" and mine not in ends and set(owners[before]) & set(task.ranks):
            continue  # another participant waits for it, and arrives later
        times_.append(ends[mine] if mine in ends else max(ends[before, other] for other in owners[before]))
    return max(times_)


@settings(max_examples=100)
@given(random_programs())
def test_classes_change_nothing(case: tuple[Any, dict[str, float]]) -> None:
    program, given_s = case
    wanted = simulate(program, given_s)
    made = schedule(program, given_s=given_s)
    assert times(made) == wanted
    assert made.makespan_s == max((end for _, end in wanted.values()), default=0.0)


@settings(max_examples=100)
@given(random_programs())
def test_the_critical_chain_has_no_gap(case: tuple[Any, dict[str, float]]) -> None:
    program, given_s = case
    spans = schedule(program, given_s=given_s).spans
    for place in range(len(spans)):
        before = spans.before[place]
        assert spans.start[place] == (spans.end[before] if before >= 0 else 0.0)
        assert spans.ideal[place] <= spans.end[place]
