"""Who sends how much to whom, without a browser."""

from __future__ import annotations

import numpy as np
import pytest
from dtir_app.frames.flows import SIDE, planned_flows, process_units, rank_units
from dtir_app.frames.ramps import CIVIDIS, WITHIN_NOISE, amount_colour, mixed, ratio_colour, text_on
from dtir_app.frames.traffic import Square, pairs, square_of, sums, tasks_behind, traffic_frame
from dtir_app.store import Store
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.groups import groups_of
from dtir.analysis.volume import wire_bytes
from dtir.cost.reshard import Volume, reshard_volume
from dtir.ir.builder import ProgramBuilder
from dtir.ir.collectives import AllReduce, AllToAll, Broadcast, CollectivePermute, collective_kind
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.ranks import RankRange
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import Collective
from tests.app.build import store_of, store_of_example
from tests.helpers.authoring import program, sketch

REAL = ("transformer_train", "transformer_64", "fsdp", "ulysses", "ring_attention", "halo", "llama_block")


def one_task(spec: object, axes: dict[str, int]) -> Store:
    build = ProgramBuilder("one", mesh=LogicalMesh("m", tuple(MeshAxis(*item) for item in axes.items())))
    a, b = build.input("a", (8,), "f32"), build.value("b", (8,), "f32")
    build.task("demo.send", (a,), (b,), body=Collective(spec))  # type: ignore[arg-type]
    return store_of(build.build())


def matrix(store: Store) -> np.ndarray:
    flows = planned_flows(store, rank_units(store.mesh.size))
    assert flows.left_out == ()
    return square_of(flows, np.ones(len(store.tasks), dtype=bool), None, {}).planned


@pytest.mark.parametrize("name", REAL)
def test_pairs_add_up_to_what_every_algorithm_sends_at_least(name: str) -> None:
    store = store_of_example(name)
    flows = {flow.task: flow for flow in planned_flows(store, rank_units(store.mesh.size)).flows}
    checked = 0
    for task, record in enumerate(store.task_records):
        if isinstance(record.body, Collective):
            spec, size = record.body.spec, float(store.tasks.message_bytes[task])
            groups = groups_of(spec, store.mesh) or ()
            if isinstance(spec, CollectivePermute):
                wanted = size * sum(a != b for a, b in groups)
            else:
                wanted = sum(float(wire_bytes(collective_kind(spec), len(group), size)) for group in groups)
            runs = float(store.tasks.executions[task])
            assert flows[task].sent_bytes.sum() == pytest.approx(wanted * (runs if np.isfinite(runs) else 1))
            checked += 1
    assert checked


def test_a_ring_sends_to_the_next_member_of_the_group() -> None:
    found = matrix(one_task(AllReduce(tuple(range(8)), 64, ReductionKind.SUM, axes=("tp",)), {"dp": 2, "tp": 4}))
    assert {tuple(pair) for pair in np.argwhere(found > 0).tolist()} == {
        (0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4),
    }  # fmt: skip
    assert set(found[found > 0].tolist()) == {2 * 3 * 64 / 4}


def test_an_all_to_all_uses_every_pair_alike_and_a_permute_its_own() -> None:
    found = matrix(one_task(AllToAll((0, 1, 2, 3), 64), {"x": 4}))
    assert (np.diag(found) == 0).all()
    assert set(found[~np.eye(4, dtype=bool)].tolist()) == {16.0}
    moved = matrix(one_task(CollectivePermute((0, 1, 2), 40, ((0, 2), (2, 0), (1, 1))), {"x": 3}))
    assert {(a, b): moved[a, b] for a, b in np.argwhere(moved > 0).tolist()} == {(0, 2): 40.0, (2, 0): 40.0}


def test_a_broadcast_is_a_chain_from_its_root() -> None:
    found = matrix(one_task(Broadcast((0, 1, 2, 3), 10, 2), {"x": 4}))
    assert {tuple(pair) for pair in np.argwhere(found > 0).tolist()} == {(2, 3), (3, 0), (0, 1)}


def test_many_ranks_are_shown_in_blocks_with_the_same_total() -> None:
    spec = AllReduce(RankRange(0, 4096), 4096, ReductionKind.SUM, axes=("y",))
    store = one_task(spec, {"x": 64, "y": 64})
    units = rank_units(4096)
    assert (units.count, units.ranks_each, units.noun, units.label(1)) == (SIDE, 64, "block", "64–127")
    found = matrix(store)
    assert found.shape == (SIDE, SIDE)
    assert found.sum() == pytest.approx(64 * 2 * 63 * 4096)
    assert (found[~np.eye(SIDE, dtype=bool)] == 0).all()
    assert len(traffic_frame(Square(units, found, None), "planned", None).cells["x"]) == SIDE


def test_processes_send_nothing_to_themselves() -> None:
    store = store_of_example("transformer_train")
    flows = planned_flows(store, process_units((0, 0, 0, 0, 1, 1, 1, 1)))
    found = square_of(flows, np.ones(len(store.tasks), dtype=bool), None, {}).planned
    assert found.shape == (2, 2)
    assert (np.diag(found) == 0).all()
    assert found[0, 1] == found[1, 0] > 0


def test_a_cell_leads_to_the_tasks_behind_it_and_filters_are_kept() -> None:
    store = store_of_example("transformer_train")
    flows = planned_flows(store, rank_units(8))
    everything = np.ones(len(store.tasks), dtype=bool)
    behind = tasks_behind(store, flows, everything, 0, 1)
    names = {str(item["text"]) for item in behind}
    assert "all-reduce" in names
    axis1 = {
        store.tasks.name[task]
        for task, how in store.tasks.group_axes.items()
        if how.axes == ("axis1",) and isinstance(store.task_records[task].body, Collective)
    }
    assert names == axis1
    only = np.zeros(len(store.tasks), dtype=bool)
    only[store.tasks.name.index("all-reduce.1")] = True
    assert [item["text"] for item in tasks_behind(store, flows, only, 0, 1)] == ["all-reduce.1"]
    square = square_of(flows, only, None, {})
    assert square.planned.sum() == pytest.approx(2 * 2 * 3 * 1024)
    assert len(pairs(square)) == 8
    assert {row["sent"] for row in sums(square)} == {"1.5 KiB"}


def test_what_was_not_measured_is_hatched_and_ratios_say_so() -> None:
    units = rank_units(2)
    planned = np.array([[0.0, 100.0], [100.0, 0.0]])
    frame = traffic_frame(Square(units, planned, None), "ratio", None)
    assert frame.problem == "not measured"
    assert frame.cells["x"] == []
    assert frame.blanks["size"] == [2]
    measured = np.array([[0.0, 105.0], [300.0, 0.0]])
    frame = traffic_frame(Square(units, planned, measured), "ratio", (1, 0))
    assert frame.cells["text"] == ["×1.05", "×3"]
    assert frame.cells["colour"][0] == WITHIN_NOISE != frame.cells["colour"][1]
    assert frame.cells["detail"] == ["planned 100 B, measured 105 B, as planned", "planned 100 B, measured 300 B, ×3"]
    assert frame.rings == {"x": [0], "y": [1]}
    assert [row["ratio"] for row in pairs(frame.square)] == ["×3", "×1.05"]


@given(st.floats(0.01, 100))
def test_the_diverging_ramp_is_symmetric_and_never_red_or_green(ratio: float) -> None:
    colour, other = ratio_colour(ratio), ratio_colour(1 / ratio)
    if abs(ratio - 1) <= 0.1:
        assert colour == WITHIN_NOISE
    elif abs(1 / ratio - 1) > 0.1:
        red, blue = int(colour[1:3], 16), int(colour[5:7], 16)
        assert (red >= blue) == (ratio > 1)
        red, blue = int(other[1:3], 16), int(other[5:7], 16)
        assert (red >= blue) == (ratio < 1)


def test_amounts_have_their_place_on_the_ramp_and_text_can_be_read() -> None:
    assert amount_colour(1, 100, 1) == CIVIDIS[0]
    assert amount_colour(100, 100, 1) == CIVIDIS[-1]
    assert amount_colour(10, 100, 1) == mixed(CIVIDIS, 0.5)
    assert [text_on(CIVIDIS[0]), text_on(CIVIDIS[-1])] == ["#FFFFFF", "#000000"]


SPLIT = "  x [8, 8] dims: [[tp], []]\n"
EVERY = 1 - np.eye(4)
RING = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)


@pytest.mark.parametrize(
    ("line", "task", "wanted"),
    [
        ("  y [8, 8] dims: [[], [tp]]\n", "reshard x -> y", 16 * EVERY),
        ("  y [8, 8] dims: [[], []]\n", "reshard x -> y", 64 * EVERY),
        ("  y [8, 8] dims: [[tp], []]\n", "reshard x -> y", 0 * EVERY),
        ("  y [8, 8] dims: [[tp], []], halo: {0: 1}\n", "kind: reshard, op: halo, in: [x], out: [y]", 32 * RING),
    ],
)
def test_a_reshard_sends_what_each_destination_lacks(line: str, task: str, wanted: np.ndarray) -> None:
    text = f"mesh [tp, 4]\nvalues\n{SPLIT}{line}tasks\n  t: {task}\nin x\nout y"
    made = program(sketch(text))
    assert (matrix(store_of(made)) == wanted).all()
    values = {item.id: item for item in made.values}
    volume = reshard_volume(made.tasks[0], made.tasks[0].body, values, made.mesh)  # type: ignore[arg-type]
    assert isinstance(volume, Volume)
    assert volume.total_bytes == wanted.sum()


def test_a_reshard_among_very_many_ranks_is_left_out_and_counted() -> None:
    text = "mesh [tp, 512]\nvalues\n  x [512, 8] dims: [[tp], []]\n  y [512, 8] dims: [[], []]\ntasks\n  t: reshard x -> y\nin x\nout y"
    store = store_of(program(sketch(text)))
    flows = planned_flows(store, rank_units(512))
    assert flows.flows == ()
    assert flows.left_out == (("a reshard among more ranks than are looked at one by one", 1),)
