"""Lanes, windows and rows of the timeline, without a browser."""

from __future__ import annotations

import numpy as np
import pytest
from dtir_app.frames.clock import ratio_text, seconds_text, ticks
from dtir_app.frames.lanes import exposed, joined, make_lane, shown
from dtir_app.frames.timeline import GLYPHS, MARKS, View, pick, timeline_frame
from dtir_app.frames.timeline_bars import lane_place, place_of
from dtir_app.frames.timeline_rows import ROWS, timeline_rows
from dtir_app.planning import NotPlanned, Planned, make_planned
from dtir_app.profiles import DEFAULT_PROFILE, PRESETS
from dtir_app.store import Store
from hypothesis import given
from hypothesis import strategies as st

from dtir.ir.builder import ProgramBuilder
from dtir.ir.collectives import AllReduce
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import Collective
from dtir.presets.pipeline import PipelineKind, pipeline_program
from tests.app.build import store_of, store_of_example

bars = st.lists(st.tuples(st.floats(0, 10), st.floats(0.001, 3)), max_size=40)


def planned(store: Store, profile: str = DEFAULT_PROFILE) -> Planned:
    made = make_planned(store, profile)
    assert isinstance(made, Planned)
    return made


@given(bars)
def test_joined_covers_the_same_moments(items: list[tuple[float, float]]) -> None:
    items = sorted(items)
    start, end = np.array([a for a, _ in items]), np.array([a + b for a, b in items])
    first, last = joined(start, end)
    assert (first[1:] > last[:-1]).all()
    for moment in np.linspace(-1, 14, 60):
        inside = any(a <= moment <= b for a, b in zip(start, end, strict=True))
        assert inside == any(a <= moment <= b for a, b in zip(first, last, strict=True))


@given(bars, bars)
def test_exposed_is_communication_without_compute(
    sends: list[tuple[float, float]], works: list[tuple[float, float]]
) -> None:
    lanes = [make_lane([a for a, _ in some], [a + b for a, b in some], [0] * len(some)) for some in (sends, works)]
    first, last = exposed(lanes[0], lanes[1])
    assert (last > first).all() if len(first) else True
    for moment in np.linspace(-1, 14, 97):
        sending, working = (bool(((lane.start_s < moment) & (moment < lane.end_s)).any()) for lane in lanes)
        on_edge = any(
            np.isclose(moment, edge).any() for lane in lanes for edge in (lane.start_s, lane.end_s) if len(edge)
        )
        if not on_edge:
            assert (sending and not working) == bool(((first < moment) & (moment < last)).any())


@given(st.integers(1, 4000), st.integers(20, 400), st.floats(0, 0.9), st.floats(0.01, 1))
def test_a_window_shows_every_bar_as_itself_or_in_a_column(count: int, budget: int, first: float, span: float) -> None:
    start = np.linspace(0, 1, count, endpoint=False)
    lane = make_lane(start, start + 0.7 / count, np.arange(count))
    last = min(1.0, first + span)
    found = shown(lane, first, last, 900, budget, np.zeros(count, dtype=np.int64))
    part = lane.between(first, last)
    assert len(found.bars) + found.hidden == part.stop - part.start
    assert len(found.bars) + len(found.fill) <= max(budget, 16)
    assert set(found.bars.tolist()) <= set(range(part.start, part.stop))
    assert ((found.fill > 0) & (found.fill <= 1)).all()
    assert (found.left_s < found.right_s).all()


def test_columns_are_as_high_as_the_time_they_fill() -> None:
    count = 100_000
    start = np.arange(count) / count
    lane = make_lane(start, start + np.where(start < 0.5, 0.25, 1.0) / count, np.zeros(count))
    found = shown(lane, 0, 1, 800, 100, np.zeros(1, dtype=np.int64))
    assert not len(found.bars)
    assert found.fill.tolist() == [0.25, 1.0]
    assert found.count.sum() == found.hidden == count


def test_a_bar_is_found_at_its_moment_or_nearby() -> None:
    lane = make_lane([0, 2, 2.5], [1, 6, 3], [7, 8, 9], [0, 1.5, 2.5])
    assert [lane.at(t) for t in (0.5, 1.6, 2.7, 5)] == [0, 1, 2, 1]
    assert lane.at(7) == -1
    assert lane.at(7, slack_s=1.5) == 1


@pytest.mark.parametrize("name", ["transformer_64", "scan_layers", "pipeline", "halo", "llama_block"])
def test_lanes_hold_what_the_cost_model_counts_rounds_of_loops_included(name: str) -> None:
    plan = planned(store_of_example(name))
    for own in plan.classes:
        for lane, counted in ((own.compute, own.times.compute_s), (own.communication, own.times.communication_s)):
            assert not lane.rounds.any()
            assert (lane.end_s - lane.start_s).sum() == pytest.approx(counted)
        hidden = (own.exposed[1] - own.exposed[0]).sum()
        assert hidden <= own.times.exposed_s * (1 + 1e-9)
        if name in ("scan_layers", "llama_block", "pipeline"):  # elsewhere a rank stands in two transfers at one moment
            assert hidden == pytest.approx(own.times.exposed_s)
    ends = [lane.latest_s[-1] for own in plan.classes for lane in (own.compute, own.communication) if len(lane)]
    assert max(ends) == pytest.approx(plan.makespan_s)


def test_the_critical_path_reaches_from_the_first_start_to_the_last_end() -> None:
    plan = planned(store_of_example("llama_block"))
    ((compute, communication),) = [own.critical for own in plan.classes]
    pieces = np.concatenate([np.stack(item, axis=1) for item in (compute, communication)])
    assert (pieces[:, 1] - pieces[:, 0]).sum() == pytest.approx(plan.makespan_s)


def test_a_picture_of_many_ranks_has_a_page_of_rows_and_few_glyphs() -> None:
    store = store_of(pipeline_program(PipelineKind.ONE_F_ONE_B, stages=24, microbatches=60))
    plan = planned(store)
    frame = timeline_frame(store, plan, None, View())
    assert len(frame.rows.shown) == ROWS
    assert (frame.rows.pages, frame.rows.total, frame.rows.ranks) == (2, 24, 24)
    assert len(frame.bars["left"]) <= GLYPHS * 1.1
    assert len(frame.strips["left"]) <= 3 * MARKS
    assert len({len(column) for column in frame.bars.values()}) == 1
    assert frame.hidden + frame.drawn >= 24 * 60
    assert timeline_frame(store, plan, None, View(page=1)).rows.shown[0].label == "rank 16"
    assert timeline_frame(store, plan, None, View(page=99)).rows.page == 1


def test_ranks_that_do_the_same_are_one_row_that_opens() -> None:
    store = store_of_example("transformer_64")
    plan = planned(store)
    rows = timeline_rows(store.mesh, plan, frozenset(), 0)
    assert sum(row.size for row in rows.shown) == 64
    first = rows.shown[0]
    opened = timeline_rows(store.mesh, plan, frozenset({first.key}), 0)
    assert [row.label for row in opened.shown[1 : 1 + first.size]] == ["rank 0", "rank 21", "rank 42", "rank 63"]
    assert opened.shown[1].note == "axis0=0, axis1=0, axis2=0"
    assert opened.total == rows.total + first.size


def test_a_million_ranks_that_do_the_same_are_one_row_and_a_page_when_opened() -> None:
    size = 1_000_000
    build = ProgramBuilder("wide", mesh=LogicalMesh("m", (MeshAxis("x", size),)))
    a = build.input("a", (4,), "f32")
    b = build.value("b", (4,), "f32")
    build.task(
        "demo.sum", (a,), (b,), body=Collective(AllReduce(RankRange(0, size), 16, ReductionKind.SUM, axes=("x",)))
    )
    store = store_of(build.build())
    plan = planned(store)
    assert [row.label for row in timeline_frame(store, plan, None, View(task=0)).rows.shown] == ["all 1,000,000 ranks"]
    opened = timeline_frame(store, plan, None, View(opened=frozenset({"c0"}), page=1000, task=0))
    assert len(opened.rows.shown) == ROWS
    assert opened.rows.shown[0].label == "rank 15999"


def test_a_click_finds_the_bar_and_the_selection_is_ringed_and_tied() -> None:
    store = store_of_example("halo")
    plan = planned(store)
    name = "ppermute.9"
    task = store.tasks.name.index(name)
    frame = timeline_frame(store, plan, None, View(task=task))
    assert len(frame.rings["left"]) == 8
    # Rank 4 sends to 0, 5 to 1 and so on: ties join these and nobody else.
    tops = {(min(a, b), max(a, b)) for a, b in zip(frame.ties["y0"], frame.ties["y1"], strict=True)}
    assert {(int(a), int(b)) for a, b in tops} == {(0, 4), (1, 5), (2, 6), (3, 7)}
    assert frame.first_of is not None
    middle = sum(frame.first_of) / 2
    for row in range(8):
        assert pick(frame, None, middle, row + 0.7, 1e-9) == task
        assert pick(frame, None, middle, row + 0.2, 1e-9) != task
    assert pick(frame, None, middle, -0.3, 1e-9) == -1
    assert pick(frame, None, middle, 8.5, 1e-9) == -1


def test_members_of_a_group_are_tied_and_groups_are_not() -> None:
    store = store_of_example("transformer_64")
    plan = planned(store)
    task = store.tasks.name.index("all-gather.11")  # over axis0: ranks 0, 16, 32, 48
    whole = timeline_frame(store, plan, None, View())
    keys = frozenset(row.key for row in whole.rows.shown)
    page = next(
        number
        for number in range(8)
        if any(row.label == "rank 16" for row in timeline_rows(store.mesh, plan, keys, number).shown)
    )
    frame = timeline_frame(store, plan, None, View(opened=keys, page=page, task=task))
    shown_ranks = [row.rank for row in frame.rows.shown]
    pairs = {
        (shown_ranks[int(a)], shown_ranks[int(b)])
        for a, b in zip(frame.ties["y0"], frame.ties["y1"], strict=True)
        if "r" in frame.rows.shown[int(a)].key and "r" in frame.rows.shown[int(b)].key
    }
    assert all(a % 16 == b % 16 for a, b in pairs)


def test_the_table_holds_the_bars_in_the_order_of_time() -> None:
    store = store_of_example("faults")
    frame = timeline_frame(store, planned(store), None, View(twin=True))
    drawn = sorted(frame.bars["left"])
    assert len(frame.twin) == len(drawn) == 8
    assert [row["start"] for row in frame.twin] == [seconds_text(float(start)) for start in drawn]
    assert [row["name"] for row in frame.twin][:2] == ["up", "act"]
    assert {row["side"] for row in frame.twin} == {"planned"}
    assert frame.twin[0]["rank"] == "all 8 ranks (rank 0)"


def test_what_cannot_be_put_on_a_clock_says_why() -> None:
    build = ProgramBuilder("circle", axes={"x": 2})
    a, b = build.input("a", (2,), "f32"), build.value("b", (2,), "f32")
    c = build.value("c", (2,), "f32")
    one = build.task("demo.one", (a,), (b,))
    two = build.task("demo.two", (a,), (c,), after=(one,))
    build.issue(0, (two, one))
    made = make_planned(store_of(build.build()), DEFAULT_PROFILE)
    assert isinstance(made, NotPlanned)
    assert made.reasons[0][0] == "cost.order"


def test_every_shipped_profile_can_be_chosen() -> None:
    store = store_of_example("llama_block")
    times = {profile: planned(store, profile).makespan_s for profile in PRESETS}
    assert len(set(times.values())) == len(times) == 4
    assert all("(" in planned(store, profile).title for profile in PRESETS)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("side", ["planned", "measured"])
@pytest.mark.parametrize("stream", [0, 1])
def test_places_of_lanes_are_found_again(stream: int, side: str, paired: bool) -> None:
    if side == "measured" and not paired:
        return
    top, bottom = lane_place(3, stream, side, paired)
    assert place_of((top + bottom) / 2, paired) == (3, stream, side)


def test_times_ratios_and_ticks_are_round() -> None:
    assert [seconds_text(t) for t in (0.00123, 2.5e-6, 1.5, 0.9999e-3, 600, 3e-9, float("nan"))] == [
        "1.23 ms", "2.5 µs", "1.5 s", "1 ms", "10.0 min", "3 ns", "–",
    ]  # fmt: skip
    assert [ratio_text(r) for r in (1.5, 0.1, 2000, 0, float("inf"))] == ["×1.5", "÷10", "×2,000", "–", "–"]
    assert [text for _, text in ticks(0, 0.0025, 5)] == ["0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms", "2.0 ms", "2.5 ms"]
    assert ticks(1, 1, 5) == []


@given(st.floats(-1e3, 1e3), st.floats(1e-9, 1e3), st.integers(1, 20))
def test_ticks_lie_in_the_window_and_are_few(first: float, span: float, count: int) -> None:
    found = ticks(first, first + span, count)
    assert len(found) <= 3 * count + 2
    assert all(first - span * 1e-6 - 1e-12 <= moment <= first + span * (1 + 1e-6) + 1e-12 for moment, _ in found)
