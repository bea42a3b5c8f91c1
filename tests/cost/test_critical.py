"""Critical paths and times of ranks, by hand and as identities."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from dtir.cost.critical import class_times, critical_class, critical_path, longest_path_s
from dtir.presets.pipeline import PipelineKind, pipeline_program
from tests.cost.programs import Sketch, schedule
from tests.cost.test_timeline import random_programs


def names(made: object) -> list[tuple[str, str]]:
    table = {number: task.name for number, _, task in made.numbered()}  # type: ignore[attr-defined]
    return [(table[step.task], step.because) for step in critical_path(made)]  # type: ignore[arg-type]


def test_the_path_says_what_each_step_waited_for() -> None:
    sketch = Sketch(x=2)
    sketch.work("fast", ranks=(0,))
    sketch.work("slow", ranks=(1,))
    sketch.reduce("r", after=("fast", "slow"))
    sketch.work("next", after=("r",))
    sketch.work("other")
    made = schedule(sketch.done(), given_s={"fast": 1.0, "slow": 5.0, "r": 2.0, "next": 1.0, "other": 4.0})
    assert names(made) == [
        ("slow", "nothing before it"),
        ("r", "last to arrive"),
        ("next", "needs its result"),
        ("other", "stream was taken"),
    ]
    assert made.makespan_s == 12
    assert longest_path_s(made) == 8


def test_what_hides_behind_compute_is_not_exposed() -> None:
    sketch = Sketch(x=2)
    sketch.work("a")
    sketch.reduce("r", after=("a",))
    sketch.work("b", after=("a",))
    sketch.work("c", after=("b", "r"))
    made = schedule(sketch.done(), given_s={"a": 1.0, "b": 2.0, "c": 1.0, "r": 5.0})
    (mine,), exposures = class_times(made)
    assert (mine.compute_s, mine.communication_s, mine.exposed_s, mine.idle_s) == (4, 5, 3, 0)
    (exposure,) = exposures.values()
    assert (exposure.exposed_s, exposure.waiting_s, exposure.last) == (3, 0, None)


def test_the_straggler_is_named_and_waiting_is_not_sending() -> None:
    sketch = Sketch(x=3)
    for rank, name in enumerate("abc"):
        sketch.work(name, ranks=(rank,))
    sketch.reduce("r", after=("a", "b", "c"))
    made = schedule(sketch.done(), given_s={"a": 1.0, "b": 7.0, "c": 2.0, "r": 1.0})
    times, exposures = class_times(made)
    (exposure,) = exposures.values()
    assert (exposure.last, exposure.waiting_s, exposure.exposed_s) == (1, 6, 1)
    by_rank = [times[made.classes.of(rank)] for rank in range(3)]
    assert [mine.waiting_s for mine in by_rank] == [6, 0, 5]
    assert [mine.idle_s for mine in by_rank] == [6, 0, 5]


@pytest.mark.parametrize("trips", [1, 2, 9])
def test_steps_inside_a_loop_stand_for_all_rounds(trips: int) -> None:
    sketch = Sketch(x=2)
    body = sketch.region("body")
    body.work("a")
    body.reduce("r", after=("a",))
    sketch.loop("loop", body, trips)
    made = schedule(sketch.done(), given_s={"a": 2.0, "r": 1.0})
    path = critical_path(made)
    assert sum(step.seconds * step.times for step in path) == made.makespan_s == 3 * trips
    (mine,), _ = class_times(made)
    assert (mine.compute_s, mine.exposed_s, mine.idle_s) == (2 * trips, trips, 0)


@settings(max_examples=100)
@given(random_programs())
def test_times_add_up(case: tuple) -> None:
    program, given_s = case
    made = schedule(program, given_s=given_s)
    path = critical_path(made)
    assert sum(step.seconds for step in path) == pytest.approx(made.makespan_s)
    for earlier, later in itertools.pairwise(path):
        assert later.start_s == pytest.approx(earlier.start_s + earlier.seconds)
    times, _ = class_times(made)
    for mine in times:
        assert 0 <= mine.exposed_s <= mine.communication_s
        assert mine.compute_s + mine.exposed_s + mine.idle_s == pytest.approx(made.makespan_s)
    if times:
        assert times[critical_class(made)].end_s == made.makespan_s
        assert max(longest_path_s(made), *(mine.compute_s for mine in times)) <= made.makespan_s


@pytest.mark.parametrize("kind", [PipelineKind.GPIPE, PipelineKind.ONE_F_ONE_B])
def test_idle_time_of_a_pipeline_is_its_bubble(kind: PipelineKind) -> None:
    stages, microbatches = 4, 8
    program = pipeline_program(kind, stages=stages, microbatches=microbatches)
    made = schedule(program, given_s={"forward": 1.0, "backward": 2.0, "transfer": 0.0})
    times, _ = class_times(made)
    for mine in times:
        assert mine.idle_s / made.makespan_s == pytest.approx((stages - 1) / (microbatches + stages - 1))
