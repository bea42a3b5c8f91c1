"""Figures as SVG: every view of every bundled program has a form, and nothing in a label is markup."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from bokeh.models import ColumnDataSource, HBar, Plot, Range1d, Scatter
from bokeh.models.glyphs import Wedge
from dtir_app.drawing import Styles, draw_figure, standalone
from dtir_app.drawing.fitting import cut
from dtir_app.drawing.hatches import hatch_markup
from dtir_app.drawing.reading import UnknownLook
from dtir_app.drawing.svg import escaped
from dtir_app.exporting.stage import Stage
from dtir_app.gallery import examples
from dtir_app.rows import rows_of_views
from dtir_app.selection import of_task
from dtir_app.views.base import blank_figure, draw
from hypothesis import given
from hypothesis import strategies as st

from tests.app.build import opened_example

SVG = "{http://www.w3.org/2000/svg}"
SMALL = [item.name for item in examples() if item.name not in ("transformer_train", "transformer_64")]


def parsed(body: str) -> ET.Element:
    return ET.fromstring(f'<svg xmlns="http://www.w3.org/2000/svg">{body}</svg>')


@pytest.mark.parametrize("name", SMALL)
def test_every_figure_of_every_view_has_an_svg_form(name: str) -> None:
    opened = opened_example(name)
    stage = Stage(opened)
    store = stage.store
    communication = np.flatnonzero(np.isin(store.tasks.family, [1, 2, 3]))
    stage.session.select(of_task(int(communication[0])))
    drawn = {}
    for view in rows_of_views():
        stage.show(view)
        drawn |= stage.drawings_of(view, dark=None)
    assert {"graph", "mesh"} <= set(drawn)
    for one in drawn.values():
        root = parsed(one.body)
        assert one.width > 0
        assert one.height > 0
        for element in root.iter():
            for key in ("x", "y", "cx", "cy", "width", "height", "r"):
                assert math.isfinite(float(element.get(key, "0")))
    rules = stage.styles.css()
    assert "[data-theme=dark]" in rules
    used = set(re.findall(r'class="([^"]+)"', "".join(one.body for one in drawn.values())))
    assert used == set(re.findall(r"^\.(\w+)\{", rules, re.MULTILINE))


def test_the_graph_says_what_its_items_are() -> None:
    stage = Stage(opened_example("faults"))
    stage.show("graph")
    root = parsed(stage.drawings_of("graph", dark=False)["graph"].body)
    tasks = [element for element in root.iter() if element.get("data-task")]
    assert sorted(int(element.get("data-task", "")) for element in tasks) == list(range(8))
    titles = [title.text or "" for element in tasks if (title := element.find(f"{SVG}title")) is not None]
    assert any("sum_tp" in text and "all-reduce" in text for text in titles)
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {"AR", "AG", "up", "down", "sum_tp"} <= texts
    shapes = Counter(element.get("d", "").count("L") for element in tasks)
    assert shapes == {3: 6, 5: 2}, "six rectangles and two hexagons"


def test_the_mesh_has_a_cell_for_every_rank() -> None:
    stage = Stage(opened_example("faults"))
    stage.session.select(of_task(4))
    stage.show("mesh")
    root = parsed(stage.drawings_of("mesh", dark=True)["mesh"].body)
    assert len(list(root.iter(f"{SVG}rect"))) == 8
    assert {str(rank) for rank in range(8)} <= {element.text for element in root.iter(f"{SVG}text")}


def test_a_picture_is_the_same_every_time() -> None:
    def text() -> str:
        stage = Stage(opened_example("faults"))
        stage.session.select(of_task(4))
        stage.show("tensor")
        drawings = list(stage.drawings_of("tensor", dark=False).values())
        return standalone(drawings, stage.styles, title="t", captions=["before", "after"])

    assert text() == text()


@given(st.text())
def test_no_text_is_markup(text: str) -> None:
    root = parsed(f"<text a='{escaped(text)}'>{escaped(text)}</text>")
    (only,) = root
    assert len(only) == 0
    clean = escaped(text)
    assert not set(clean) & set("<>\"'")
    assert (only.text or "").replace("\r", "\n") == re.sub(
        "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text
    ).replace("\r\n", "\n").replace("\r", "\n")


class View:
    """A figure of one glyph."""

    def __init__(self, glyph: object, columns: dict[str, object]) -> None:
        self.figure: Plot = blank_figure("other")
        self.figure.x_range, self.figure.y_range = Range1d(0, 10), Range1d(10, 0)
        draw(self.figure, ColumnDataSource(columns), glyph)

    def restyle(self, dark: bool) -> None:
        """It looks the same in both."""


def test_columns_and_values_are_read_alike() -> None:
    view = View(
        HBar(y="y", left=0, right="r", height=1, fill_color="c", line_color=None, fill_alpha=0.5),
        {"y": [1.0, 3.0, math.nan], "r": np.array([5, 10, 1]), "c": ["#112233", "red", "blue"]},
    )
    styles = Styles()
    drawn = draw_figure(view, styles, dark=False, size_px=(100, 100))
    boxes = [(e.get("x"), e.get("y"), e.get("width"), e.get("height")) for e in parsed(drawn.body).iter(f"{SVG}rect")]
    assert boxes == [("0", "5", "50", "10"), ("0", "25", "100", "10")]
    assert "fill:#112233" in styles.css()
    assert "fill:blue" not in styles.css(), "what has no place is not drawn"


@pytest.mark.parametrize("glyph", [Wedge(x="y", y="y", radius=1), Scatter(x="y", y="y", marker="asterisk")])
def test_what_has_no_form_is_not_left_out_silently(glyph: object) -> None:
    with pytest.raises(UnknownLook):
        draw_figure(View(glyph, {"y": [1.0]}), Styles(), dark=False)


@given(
    st.sampled_from(["/", "\\", "x", "-", "|", "+", ".", "right_diagonal_line", "unknown"]),
    st.floats(0, 5000),
    st.floats(0, 5000),
    st.floats(1, 50),
)
def test_a_hatch_stays_in_its_box_and_small(pattern: str, width: float, height: float, scale: float) -> None:
    path = hatch_markup({"x": "10", "y": "20", "width": str(width), "height": str(height)}, pattern, scale)
    numbers = [float(text) for text in re.findall(r"(?:M|L)(-?[\d.]+) ", path)]
    assert all(9.9 <= number <= 10.1 + width for number in numbers)
    assert path.count("M") <= 2000
    assert bool(path) == (width >= 3 and height >= 3)


def test_a_text_is_cut_where_it_has_no_room() -> None:
    assert (cut("all-reduce", 20), cut("all-reduce", 6), cut("all-reduce", 3)) == ("all-reduce", "all-r…", "")
