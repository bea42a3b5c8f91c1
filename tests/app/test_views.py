"""Figures without a browser: what their sources hold, and that they are found by name."""

from __future__ import annotations

import pytest
from bokeh.document import Document
from dtir_app.frames.graph import graph_frame
from dtir_app.frames.highlight import highlight
from dtir_app.frames.mesh import mesh_frame
from dtir_app.frames.tensor import tensor_frame
from dtir_app.kinds import Family
from dtir_app.locked import Pen
from dtir_app.scenes import scene
from dtir_app.selection import of_task
from dtir_app.theme import (
    AXIS_FILLS,
    AXIS_TEXTS,
    DARK,
    FAMILY_TEXTS,
    LIGHT,
    Tokens,
    css_variables,
    family_fills,
    family_texts,
)
from dtir_app.views.graph import GraphView
from dtir_app.views.mesh import MeshView
from dtir_app.views.tensor import TensorView

from tests.app.build import store_of_example


def test_the_graph_is_replaced_not_rebuilt() -> None:
    store = store_of_example("transformer_train")
    view = GraphView()
    figure, sources = view.figure, [view.nodes, view.edges]
    for folded in (True, False):
        at = scene(store, (), folded)
        frame = graph_frame(store, at)
        view.show(frame)
        assert len(view.nodes.data["x"]) == at.count
        assert len({len(column) for column in view.nodes.data.values()}) == 1
        made = highlight(at, frame.placed, 33)
        view.highlight(made.rings, made.edges)
        assert view.rings.data["width"][0] == 3.0
    assert view.figure is figure
    assert [view.nodes, view.edges] == sources
    assert view.nodes.tags == [2, False]


def test_the_camera_gets_commands() -> None:
    view = GraphView()
    view.look("go", 10, 5, (3, 2))
    assert view.camera.data == {"kind": ["go"], "width": [10], "height": [5], "x": [3], "y": [2], "n": [2]}
    view.look("go", 10, 5, None)
    assert view.camera.data["kind"] == ["fit"]
    assert view.camera.data["n"] == [3]


def test_mesh_and_tensor_take_their_columns() -> None:
    store = store_of_example("transformer_64")
    mesh = MeshView()
    frame = mesh_frame(store, of_task(2))
    mesh.show(frame.cells, frame.arrows, frame.ticks, frame.extent)
    assert len(mesh.cells.data["x"]) == 64
    tensor = TensorView("tensor-before")
    made = tensor_frame(store, 1)
    tensor.show(made.tiles, made.ticks)
    assert len(tensor.tiles.data["x"]) == len(made.tiles["x"])


@pytest.mark.parametrize("dark", [True, False])
def test_every_figure_can_be_served_in_both_themes(dark: bool) -> None:
    views = [GraphView(dark), MeshView(dark), TensorView("tensor-before", dark), TensorView("tensor-after", dark)]
    document = Document()
    for view in views:
        view.restyle(not dark)
        view.restyle(dark)
        document.add_root(view.figure)
    document.validate()
    assert [root.name for root in document.roots] == ["graph", "mesh", "tensor-before", "tensor-after"]
    assert document.to_json().content["roots"]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_measured_right() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_outlines_stand_out(theme: Tokens) -> None:
    for ground in (theme.page, theme.paper, theme.raised):
        for text in (theme.text, theme.muted, theme.accent, theme.error, theme.warning, theme.ok):
            assert contrast(text, ground) >= 4.5
        assert contrast(theme.strong_line, ground) >= 3
        assert contrast(theme.selected, ground) >= 3
    assert contrast(theme.text, theme.soft_warning) >= 4.5
    assert contrast(theme.text, theme.soft_error) >= 4.5
    assert contrast(theme.accent, theme.soft_accent) >= 4.5
    assert contrast(theme.edge, theme.paper) >= 3
    assert contrast(theme.on_accent, theme.accent) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_text_on_fills_stands_out(dark: bool) -> None:
    for fill, text in zip(family_fills(dark), family_texts(dark), strict=True):
        assert contrast(fill, text) >= 4.5
    assert len(family_fills(dark)) == len(Family) == len(FAMILY_TEXTS) + 1


def test_ranks_on_group_colours_can_be_read() -> None:
    assert min(contrast(fill, text) for fill, text in zip(AXIS_FILLS, AXIS_TEXTS, strict=True)) >= 4.5


def test_both_themes_declare_the_same_variables() -> None:
    light, dark = css_variables().strip().splitlines()
    names = [{item.split(":")[0] for item in part.split("{", 1)[1].split(";")} for part in (light, dark)]
    assert names[1] - names[0] == set()


class Ticks:
    """Stands for a document: keeps what is put off to the next tick."""

    def __init__(self) -> None:
        self.waiting: list[object] = []

    def add_next_tick_callback(self, callback: object) -> None:
        self.waiting.append(callback)

    def tick(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


def test_a_pen_writes_at_once_until_the_page_is_built() -> None:
    done: list[str] = []
    pen = Pen(Ticks())
    pen.write("a", lambda: done.append("now"))
    assert done == ["now"]


def test_a_pen_puts_off_and_keeps_the_last() -> None:
    ticks, done = Ticks(), []
    pen = Pen(ticks)
    pen.start()
    for number in range(3):
        pen.write("graph", lambda number=number: done.append(f"graph {number}"))
    pen.write("mesh", lambda: done.append("mesh"))
    assert done == []
    assert len(ticks.waiting) == 1
    ticks.tick()
    assert done == ["graph 2", "mesh"]
    pen.write("mesh", lambda: done.append("again"))
    ticks.tick()
    assert done[-1] == "again"


def test_a_closed_pen_writes_nothing() -> None:
    ticks, done = Ticks(), []
    pen = Pen(ticks)
    pen.start()
    pen.write("graph", lambda: done.append("late"))
    pen.close()
    ticks.tick()
    pen.write("graph", lambda: done.append("later"))
    assert done == []
