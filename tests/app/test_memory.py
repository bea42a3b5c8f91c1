"""What lives when, without a browser: compared with the cost model's own peaks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from dtir_app.frames.memory import NAMED, SAMPLES, MemoryFrame, legend, memory_frame, pick
from dtir_app.gallery import examples
from dtir_app.living import Block, lives_of, totals
from dtir_app.planning import Planned, make_planned
from dtir_app.profiles import DEFAULT_PROFILE
from dtir_app.store import Store

from dtir.cost.memory import memory_by_class
from dtir.ir.builder import ProgramBuilder
from dtir.ir.types import Effect, EffectKind
from dtir.presets.pipeline import PipelineKind, pipeline_program
from dtir.verify import verify
from tests.app.build import store_of, store_of_example


def planned(store: Store) -> Planned:
    made = make_planned(store, DEFAULT_PROFILE)
    assert isinstance(made, Planned)
    return made


def frames(store: Store) -> Iterable[tuple[float, MemoryFrame]]:
    plan = planned(store)
    peaks = memory_by_class(plan.made)
    for one, (rank, peak) in enumerate(zip(plan.ranks.first_ranks(), peaks, strict=True)):
        yield float(peak.peak_bytes), memory_frame(store, lives_of(plan.made, one, rank), rank)


@pytest.mark.parametrize("name", [item.name for item in examples()])
def test_the_picture_has_the_peak_of_the_cost_model(name: str) -> None:
    for peak, frame in frames(store_of_example(name)):
        assert frame.peak_bytes == pytest.approx(peak)
        stacked = sum(layer.heights for layer in frame.layers)
        assert np.allclose(stacked, frame.total)
        assert frame.total.max() == pytest.approx(peak)
        assert len(frame.samples) <= SAMPLES
        assert len(frame.areas["xs"]) < 400


def test_stages_of_a_pipeline_hold_as_many_microbatches_as_they_should() -> None:
    store = store_of(pipeline_program(PipelineKind.ONE_F_ONE_B, stages=4, microbatches=8))
    found = [frame.peak_bytes for _, frame in frames(store)]
    assert found == [peak for peak, _ in frames(store)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 1


def small(limit: int | None = None) -> ProgramBuilder:
    build = ProgramBuilder("small", axes={"x": 2})
    a = build.input("a", (4,), "f32")
    b, c = build.value("b", (8,), "f32"), build.value("c", (2,), "f32")
    build.task("demo.grow", (a,), (b,), name="grow")
    build.task("demo.shrink", (b,), (c,), name="shrink")
    build.output(c)
    if limit is not None:
        build.limit("peak_bytes", limit)
    return build


def test_the_budget_is_a_line_and_the_peak_is_named() -> None:
    store = store_of(small(40).build())
    ((_, frame),) = frames(store)
    assert frame.peak_bytes == 16 + 32
    assert store.tasks.name[frame.peak_task] == "grow"
    assert frame.budgets == (("peak_bytes", 40.0),)
    assert frame.lines["text"] == ["peak_bytes 40 B"]
    assert [(row["text"], row["size"], row["until"]) for row in frame.at_peak] == [
        ("b", "32 B", "shrink"),
        ("a", "16 B", "grow"),
    ]
    assert frame.marks["text"] == ["peak 48 B"]


def test_a_click_finds_the_value_of_a_layer() -> None:
    store = store_of(small().build())
    ((_, frame),) = frames(store)
    assert [layer.name for layer in frame.layers if layer.heights[1]] == ["a", "b"]
    assert [store.values.name[pick(frame, 1.5, y)[0]] for y in (8, 30)] == ["a", "b"]
    assert pick(frame, 2.5, 36) == (-1, 2)  # a band of several values
    assert pick(frame, 2.5, 500) == (-1, 2)
    assert pick(frame, 99, 1) == (-1, -1)


def test_what_is_never_freed_has_no_right_edge() -> None:
    build = small()
    d = build.value("d", (16,), "f32")
    build.task("demo.alloc", (), (d,), name="take", effects=(Effect(EffectKind.ALLOC, "scratch"),))
    program = build.build()
    leaks = [item for item in verify(program) if item.code == "memory.leak"]
    assert leaks
    store = store_of(program, *leaks)
    ((_, frame),) = frames(store)
    assert [store.values.name[value] for value in frame.leaks] == ["d"]
    assert "never freed" in {item["label"] for item in legend(frame)}
    layer = next(layer for layer in frame.layers if layer.role == "leak")
    assert layer.heights[-1] == 64
    right_edges = set(frame.edges["x"])
    ends = {max(xs) for xs, name in zip(frame.areas["xs"], frame.areas["name"], strict=True) if name == "d"}
    assert not ends & right_edges


def test_totals_follow_births_and_deaths() -> None:
    blocks = [Block(0, 10, -1, 1), Block(1, 5, 0, None), Block(2, 1, 2, 2)]
    assert totals(blocks, {1: 100.0}, 4) == [10, 15, 115, 6, 5]


def test_a_long_program_keeps_its_peak_and_few_layers() -> None:
    build = ProgramBuilder("long", axes={"x": 2})
    value = build.input("v", (4,), "f32")
    for number in range(3000):
        fresh = build.value(f"v{number}", (4 if number != 1777 else 4000,), "f32")
        build.task("demo.step", (value,), (fresh,))
        value = fresh
    build.output(value)
    ((peak, frame),) = frames(store_of(build.build()))
    assert frame.peak_bytes == peak == 16000 + 16
    assert float(frame.total.max()) == peak
    assert len(frame.samples) == SAMPLES
    assert len([layer for layer in frame.layers if layer.value >= 0]) <= NAMED
