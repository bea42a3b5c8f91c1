"""Peaks of live values: by hand, against counting at every step, and on real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtir.cost.memory import memory_by_class
from dtir.cost.presets import load_preset
from dtir.cost.schedule import make_schedule
from dtir.importers import load_path
from dtir.ir import (
    AllGather,
    Collective,
    Control,
    DistributedTaskIR,
    Halo,
    HaloDim,
    Loop,
    ProgramBuilder,
    ShardingSpec,
    ShardSizes,
)
from dtir.presets.pipeline import PipelineKind, pipeline_program
from tests.cost.programs import MACHINE


def peaks(program: DistributedTaskIR) -> list[tuple[float, str]]:
    program.require_valid()
    made = make_schedule(program, MACHINE).or_raise()
    return [(peak.peak_bytes, peak.task) for peak in memory_by_class(made)]


def chain(build: ProgramBuilder, sizes: list[int], *, keep: tuple[int, ...] = ()) -> list:
    values = [build.input("v0", (sizes[0],), "f32")]
    for number, size in enumerate(sizes[1:], start=1):
        values.append(build.value(f"v{number}", (size,), "f32"))
        reads = [values[number - 1], *(values[item] for item in keep if number == len(sizes) - 1)]
        build.task("demo.step", reads, (values[-1],), name=f"t{number}")
    build.output(values[-1])
    return values


def test_what_is_read_for_the_last_time_is_freed() -> None:
    build = ProgramBuilder("chain", axes={"x": 1})
    chain(build, [10, 20, 5, 1])
    assert peaks(build.build()) == [(4 * (10 + 20), "t1")]


def test_what_is_read_again_stays() -> None:
    build = ProgramBuilder("chain", axes={"x": 1})
    chain(build, [10, 20, 25, 1], keep=(0,))
    assert peaks(build.build()) == [(4 * (10 + 20 + 25), "t2")]


def test_outputs_stay_to_the_end() -> None:
    build = ProgramBuilder("outputs", axes={"x": 1})
    values = chain(build, [10, 20, 5])
    build.outputs.insert(0, values[1])
    last = build.value("w", (30,), "f32")
    build.task("demo.step", (values[2],), (last,), name="w")
    assert peaks(build.build()) == [(4 * (20 + 5 + 30), "w")]


def test_shards_ghosts_and_narrow_types_count_with_what_a_rank_holds() -> None:
    build = ProgramBuilder("shards", axes={"x": 4})
    halo = ShardingSpec((("x",), ()), (), halo=Halo((HaloDim(0, 1, 2),)))
    build.input("ghosts", (16, 3), "bf16", sharding=halo)
    build.input("bits", (9,), "u4", split={})
    build.input("whole", (5,), "f64")
    build.task("demo.noop", (), ())
    assert peaks(build.build())[0][0] == (4 + 1 + 2) * 3 * 2 + 5 + 40


def test_uneven_shards_give_every_rank_its_own_peak() -> None:
    build = ProgramBuilder("uneven", axes={"x": 3})
    build.input("v", (7,), "f32", sharding=ShardingSpec((("x",),), (), sizes=(ShardSizes(0, (3, 3, 1)),)))
    build.task("demo.noop", (), ())
    made = make_schedule(build.build(), MACHINE).or_raise()
    by_rank = {
        rank: peak.peak_bytes for one, peak in enumerate(memory_by_class(made)) for rank in made.classes.ranks_of(one)
    }
    assert by_rank == {0: 12, 1: 12, 2: 4}


def test_what_is_sent_stays_until_it_is_completed() -> None:
    build = ProgramBuilder("async", axes={"x": 2})
    shard = build.input("shard", (8,), "f32", split={0: "x"})
    full, seen, big = (
        build.value("full", (8,), "f32"),
        build.value("seen", (8,), "f32"),
        build.value("big", (50,), "f32"),
    )
    start = build.task("hlo.all-gather-start", (shard,), (full,), body=Collective(AllGather((0, 1), 32)), name="start")
    build.task("demo.work", (), (big,), name="work")
    build.task("hlo.all-gather-done", (full,), (seen,), body=Control(), completes=(start,), name="done")
    build.output(seen)
    # shard (16) lives until "done", which hands `full` on without a copy.
    assert peaks(build.build()) == [(16 + 32 + 200, "work")]


def test_a_loop_carries_in_place_and_adds_what_its_body_needs() -> None:
    build = ProgramBuilder("loop", axes={"x": 1})
    x, kept = build.input("x", (10,), "f32"), build.input("kept", (3,), "f32")
    body = build.region("body")
    state, scratch, following = (
        body.input("s", (10,), "f32"),
        body.value("t", (40,), "f32"),
        body.value("n", (10,), "f32"),
    )
    body.task("demo.a", (state,), (scratch,), name="a")
    body.task("demo.b", (scratch,), (following,), name="b")
    body.output(following)
    y, z = build.value("y", (10,), "f32"), build.value("z", (1,), "f32")
    build.task("demo.loop", (x,), (y,), body=Loop(body.id, None, 5), name="loop")
    build.task("demo.end", (y, kept), (z,), name="end")
    build.output(z)
    # kept, and inside state and scratch (state is read for the last time by "a").
    assert peaks(build.build()) == [(4 * (3 + 10 + 40), "a")]


def test_live_microbatches_are_live_memory() -> None:
    for kind, wanted in ((PipelineKind.GPIPE, [8, 8, 8, 8]), (PipelineKind.ONE_F_ONE_B, [4, 3, 2, 1])):
        program = pipeline_program(kind, stages=4, microbatches=8, batch=1, width=256)
        made = make_schedule(program, MACHINE).or_raise()
        activation, weights = 4 * 256, 4 * 256 * 256
        found = [0.0] * 4
        for one, peak in enumerate(memory_by_class(made)):
            for rank in made.classes.ranks_of(one):
                found[rank] = (peak.peak_bytes - weights) / activation
        # The first stage holds its inputs from the start, the others what their forwards have left; the last keeps its
        # results, too, since they are the gradients that its backwards begin with.
        for rank in (1, 2):
            assert wanted[rank] <= found[rank] <= wanted[rank] + 3, (kind, rank, found)
        assert 2 * wanted[3] <= found[3] <= 2 * wanted[3] + 2, (kind, found)


@pytest.mark.parametrize("name", ["mlp_tp8_fwd", "transformer4l_fsdp2tp4_scan_train", "pp2dp2tp2_fwdbwd"])
def test_real_programs_hold_their_inputs_and_more(shared_data: Path, name: str) -> None:
    program = load_path(str(shared_data / f"inputs/hlo_jax/cpu8/{name}.spmd.hlo")).program
    assert program is not None
    made = make_schedule(program, load_preset("h100-nvlink-ib")).or_raise()
    for peak in memory_by_class(made):
        assert peak.peak_bytes >= peak.input_bytes > 0
        assert peak.unknown == 0
        assert peak.task
        assert peak.largest == tuple(sorted(peak.largest, key=lambda item: -item.size_bytes))
