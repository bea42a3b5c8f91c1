from __future__ import annotations

import numpy as np
import pytest
from dtir_app.filters import Filters, filter_mask
from dtir_app.frames.graph import EDGE_LIMIT, LONG, graph_frame
from dtir_app.frames.highlight import highlight
from dtir_app.frames.labels import item_detail, item_label, main_operations, short_name
from dtir_app.frames.placing import pick, place_items
from dtir_app.frames.shapes import HALF_HEIGHT, HALF_WIDTH, UNITS
from dtir_app.frames.windows import DETAIL_LIMIT, ITEM_LIMIT, Window, inside, parse_window, whole
from dtir_app.gallery import examples
from dtir_app.kinds import Family
from dtir_app.scenes import first_place, scene
from dtir_app.store import Store

from dtir.ir.tasks import LocalCompute
from tests.app.build import store_of, store_of_example
from tests.helpers.programs import mesh_of, node_id, program, task

NAMES = [item.name for item in examples()]


def crowd(count: int, chain: bool = True) -> Store:
    mesh = mesh_of(tp=2)
    tasks = tuple(
        task(f"t{number}", mesh, LocalCompute(), dependencies=(node_id(f"t{number - 1}"),) if chain and number else ())
        for number in range(count)
    )
    return store_of(program(mesh, tasks=tasks, values=(), inputs=(), outputs=()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folded", [True, False])
def test_every_item_stands_apart_and_can_be_picked(name: str, folded: bool) -> None:
    store = store_of_example(name)
    at = scene(store, first_place(store), folded)
    frame = graph_frame(store, at)
    placed = frame.placed
    assert len(placed.items) == at.count
    assert len({(round(x, 6), round(y, 6)) for x, y in zip(placed.x, placed.y, strict=True)}) == at.count
    for position in range(0, at.count, 11):
        assert pick(placed, placed.x[position], placed.y[position]) == placed.items[position]
    assert pick(placed, -5, -5) == -1
    assert placed.x.max() + 1 == placed.width
    assert placed.y.max() + 1 == pytest.approx(placed.height)


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_of_one_length_and_edges_join_items(name: str) -> None:
    store = store_of_example(name)
    frame = graph_frame(store, scene(store, first_place(store), True))
    for columns in (frame.nodes, frame.edges, frame.stubs, frame.marks):
        assert len({len(column) for column in columns.values()}) == 1
    right = {(round(x + HALF_WIDTH, 4), round(y, 4)) for x, y in zip(frame.placed.x, frame.placed.y, strict=True)}
    for x, y in zip(frame.edges["x0"].tolist(), frame.edges["y0"].tolist(), strict=True):
        assert min(abs(x - a) + abs(y - b) for a, b in right) < 1e-3


def test_every_edge_is_drawn_or_stands_as_a_stub_or_is_counted() -> None:
    store = store_of_example("transformer_train")
    at = scene(store, (), False)
    frame = graph_frame(store, at)
    assert frame.total_edges == len(at.folded.source)
    assert frame.shown_edges == frame.total_edges <= EDGE_LIMIT
    assert len(frame.edges["x0"]) < frame.total_edges
    assert len(frame.stubs["y"]) > 0
    assert ((frame.edges["x1"] - frame.edges["x0"]) <= LONG).all()


def test_a_large_picture_is_densities_from_afar_and_items_from_near() -> None:
    store = crowd(ITEM_LIMIT * 2 + 10)
    at = scene(store, (), False)
    far = graph_frame(store, at)
    assert far.dense
    assert 0 < len(far.pieces["left"]) <= ITEM_LIMIT
    assert len(far.nodes["x"]) == 0
    assert sum(int(text.split()[0].replace(",", "")) for text in far.pieces["kind"]) == at.count
    assert far.lines == ["6,010 items drawn as densities: zoom in to see each, with its edges"]
    near = graph_frame(store, at, window=Window(0, 12, 0, 6))
    assert not near.dense
    assert 0 < near.drawn == len(near.nodes["x"]) <= DETAIL_LIMIT
    assert len(near.edges["x0"]) > 0
    assert near.lines == [f"{near.drawn} of 6,010 items are in sight or near"]


def test_every_item_of_a_window_is_drawn_or_counted_in_a_density() -> None:
    store = crowd(ITEM_LIMIT * 2 + 10)
    at = scene(store, (), False)
    placed = place_items(at)
    for window in (Window(0, 40, 0, 60), Window(3.5, 9, 10, 12), whole(placed)):
        frame = graph_frame(store, at, placed=placed, window=window)
        assert frame.window is not None
        there = inside(placed, frame.window)
        if frame.dense:
            assert sum(int(text.split()[0].replace(",", "")) for text in frame.pieces["kind"]) == len(there)
        else:
            assert sorted(frame.nodes["item"]) == sorted(placed.items[there].tolist())


def test_densities_stay_in_place_when_the_window_moves() -> None:
    store = crowd(ITEM_LIMIT * 2 + 10)
    at = scene(store, (), False)
    placed = place_items(at)
    every = whole(placed)
    first = graph_frame(store, at, placed=placed, window=every)
    second = graph_frame(
        store, at, placed=placed, window=Window(every.left + 1, every.right + 1, every.top, every.bottom)
    )
    assert len(first.pieces["left"]) > 0
    for side in ("left", "right", "top", "bottom"):
        assert first.pieces[side].tolist() == second.pieces[side].tolist()


def test_a_window_is_written_and_read() -> None:
    assert parse_window(Window(0, 12.5, -0.75, 8).text) == Window(0, 12.5, -0.75, 8)
    for text in ("", "1,2,3", "a,b,c,d", "2,1,0,1", "0,1,nan,2", "0,1e99,0,1"):
        assert parse_window(text) is None


def test_more_edges_than_are_drawn_are_counted() -> None:
    mesh = mesh_of(tp=2)
    first = [task(f"a{number}", mesh, LocalCompute()) for number in range(90)]
    every = tuple(node_id(f"a{number}") for number in range(90))
    second = [task(f"b{number}", mesh, LocalCompute(), dependencies=every) for number in range(90)]
    store = store_of(program(mesh, tasks=(*first, *second), values=(), inputs=(), outputs=()))
    frame = graph_frame(store, scene(store, (), False))
    assert frame.total_edges == 8100
    assert frame.shown_edges == EDGE_LIMIT
    assert "6,000 of 8,100 edges drawn" in frame.lines


def test_folding_is_said_with_its_numbers() -> None:
    store = store_of_example("transformer_train")
    frame = graph_frame(store, scene(store, (), True))
    assert frame.lines == ["1,207 local tasks folded into 93 blocks"]
    assert graph_frame(store, scene(store, (), False)).lines == []


def test_a_long_chain_is_wrapped_like_text() -> None:
    placed = place_items(scene(crowd(400), (), False))
    assert placed.row.max() > 3
    assert placed.width < 60
    one = place_items(scene(crowd(3), (), False))
    assert one.row.max() == 0


def test_filters_fade_and_keep_a_block_that_holds_a_hit() -> None:
    store = store_of_example("transformer_train")
    at = scene(store, (), True)
    mask = filter_mask(store, Filters(kinds=frozenset({"all_reduce"})))
    frame = graph_frame(store, at, mask=mask)
    for family, alpha in zip(frame.nodes["family"], frame.nodes["alpha"], strict=True):
        assert (alpha == 1.0) == (family == str(int(Family.COLLECTIVE)))
    one = np.zeros(len(store.tasks), bool)
    block = next(item for item in range(at.count) if at.folded.size[item] > 1)
    one[at.tasks_of(block)[1]] = True
    shown = graph_frame(store, at, mask=one)
    assert [item for item, alpha in zip(shown.nodes["item"], shown.nodes["alpha"], strict=True) if alpha == 1.0] == [
        block
    ]


def test_a_sign_marks_what_a_finding_is_about() -> None:
    store = store_of_example("faults")
    frame = graph_frame(store, scene(store, (), False))
    assert frame.marks["severity"] == ["error"] * 3
    spots = zip(frame.marks["x"], frame.marks["y"], strict=True)
    marked = {(round(float(x) - HALF_WIDTH, 4), round(float(y) + HALF_HEIGHT, 4)) for x, y in spots}
    nodes = zip(frame.nodes["x"], frame.nodes["y"], frame.nodes["title"], strict=True)
    about = {name for x, y, name in nodes if (round(x, 4), round(y, 4)) in marked}
    assert about == {"add_bias", "update", "gather_act"}


def test_a_selection_rings_itself_and_its_neighbours() -> None:
    store = store_of_example("faults")
    at = scene(store, (), False)
    placed = place_items(at)
    made = highlight(at, placed, store.task_index[store.tasks.id[3]])
    assert sorted(made.rings["which"]) == ["after", "before", "selected"]
    assert len(made.edges["x0"]) == 2
    assert made.centre == (placed.x[placed.position(at.item_of(3))], placed.y[placed.position(at.item_of(3))])
    nothing = highlight(at, placed, -1)
    assert nothing.rings["which"] == []
    assert nothing.centre is None


def test_a_task_inside_a_block_rings_the_block() -> None:
    store = store_of_example("transformer_train")
    at = scene(store, (), True)
    placed = place_items(at)
    made = highlight(at, placed, 0)
    assert at.folded.size[at.item_of(0)] > 1
    assert made.rings["which"].count("selected") == 1


def test_labels_say_what_differs() -> None:
    store = store_of_example("llama_block")
    at = scene(store, (), False)
    assert item_label(store, at, 1) == ("AG", "tp 128 MiB")
    assert item_detail(store, at, 1) == "input_collective.all_gather"
    assert item_label(store, at, 2) == ("", "query")
    assert short_name("a.b.c", ("a", "c")) == "b"
    assert short_name("forward", ("forward",)) == "forward"
    assert short_name("x.y", ("x", "y")) == "x.y"


def test_a_block_is_named_by_its_telling_operations() -> None:
    store = store_of_example("transformer_train")
    at = scene(store, (), True)
    block = max(range(at.count), key=lambda item: at.folded.size[item])
    code, name = item_label(store, at, block)
    assert code == str(at.folded.size[block])
    assert "constant" not in name
    assert main_operations(store, [0]) == "constant"


def test_families_differ_in_outline() -> None:
    assert len({tuple(unit) for unit in UNITS.values()}) == len(Family)
    for unit in UNITS.values():
        assert max(abs(x) for x, _ in unit) == pytest.approx(HALF_WIDTH)
