"""Views in cells without a browser: one selection, layouts of the right parts, HTML where nothing is live."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import panel as pn
import pytest
from dtir_app import views
from dtir_app.notebook import explore
from dtir_app.notebook.opening import _OPEN, open_object
from dtir_app.notebook.sharing import SharedSelection, shared_selection
from dtir_app.notebook.static import report_html, run_html
from dtir_app.panels.sides import run_of as run_of_desk
from dtir_app.selection import of_task
from dtir_app.state import VIEWS
from dtir_app.views import collectives_table, explorer, graph_view, inspector, mesh_view, view

import dtir
from dtir.execute import run_program
from dtir.execute.record import Columns, RunRecord
from dtir.execute.run import Request
from dtir.execute.runner import Timing
from dtir.importers import load_path
from dtir.schema.display import Displayed
from dtir.verify import verify
from tests.app.build import HOSTILE, example, hostile_program


def program() -> dtir.DistributedTaskIR:
    made = load_path(example("faults").path).program
    assert made is not None
    return made


def test_views_of_one_program_share_what_is_selected() -> None:
    one = program()
    graph, mesh, table, side = graph_view(one), mesh_view(one), collectives_table(one), inspector(one)
    assert graph.selection is mesh.selection is table.selection is side.selection
    graph.session.select(of_task(4))
    key = f"node:{graph.store.tasks.id[4]}"
    assert mesh.selection.key == key
    assert json.loads(mesh.session.parts.meshbar.payload)["title"] == "all-reduce sum_tp"
    assert json.loads(table.session.parts.drawer.payload)["selected"] == 4
    assert json.loads(side.session.parts.inspector.payload)["title"] == "sum_tp"
    mesh.selection.key = ""
    assert not graph.session.state.selection
    mesh.selection.key = "node:" + "0" * 32
    assert not graph.session.state.selection


def test_a_selection_of_its_own_stays_apart() -> None:
    own = SharedSelection()
    apart, other = graph_view(program(), selection=own), mesh_view(program())
    apart.session.select(of_task(1))
    assert own.key
    assert other.selection.key == ""


def test_a_click_in_one_view_moves_the_others() -> None:
    table, graph = collectives_table(program()), graph_view(program())
    pn.panel(table)
    table.session._heard("row", {"type": "row", "row": 7})
    assert table.store.tasks.name[graph.session.state.selection.index] == "gather_act"
    assert "selected" in graph.session.parts.graph.rings.data["which"]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_stands_alone(name: str) -> None:
    made = view(program(), name, height=300)
    layout = pn.panel(made)
    assert layout.height == 300
    assert layout.get_root() is not None


def test_the_explorer_turns_its_views() -> None:
    made = explorer(program())
    pn.panel(made)
    shown = {name: column.visible for name, column in made._views.items()}
    assert [name for name, visible in shown.items() if visible] == ["overview"]
    made.session._heard("view", {"type": "view", "view": "mesh"})
    assert [name for name, column in made._views.items() if column.visible] == ["mesh"]
    assert made.session.parts.mesh.cells.data["x"]


def test_what_is_no_view_is_refused() -> None:
    with pytest.raises(ValueError, match="is not one of overview"):
        view(program(), "nowhere")
    with pytest.raises(ValueError, match="is not one of overview"):
        explore(program(), view="nowhere")
    with pytest.raises(ValueError, match="holds no program"):
        explore(__file__)
    with pytest.raises(TypeError, match="is no program"):
        explore(3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        _ = views.nothing_of_that_name


def test_a_report_finds_its_program() -> None:
    one = program()
    report = verify(one)
    _OPEN.clear()
    with pytest.raises(LookupError, match=r"dtir\.explore\(program\) first"):
        explore(report)
    open_object(one)
    found = explore(report)
    assert [item.code for item in found.store.findings] == [item.code for item in report]
    assert found.store.findings[0].tasks
    assert found.selection is shared_selection(found.opened.digest)


def run_of(digest: str) -> RunRecord:
    return RunRecord({"name": "m", "digest": digest}, {"name": "numpy"}, {}, {}, {}, (), Columns(), {"elapsed_s": 0.5})


def test_a_run_finds_its_program() -> None:
    one = program()
    _OPEN.clear()
    with pytest.raises(LookupError, match="is not open here"):
        explore(run_of(one.digest))
    open_object(one)
    assert explore(run_of(one.digest)).store.name == one.name


def test_a_run_is_the_measured_side_of_its_program() -> None:
    one = load_path(example("fsdp").path).program
    assert one is not None
    runs = [run_program(one, Request(seed=seed, timing=Timing(2))).or_raise().record for seed in (1, 2)]
    open_object(one)
    first, second = (explore(run, view="timeline") for run in runs if run is not None)
    for shown, run in ((first, runs[0]), (second, runs[1])):
        measured = run_of_desk(shown.session.painter.desk)
        assert measured is not None
        assert measured.record is run
    assert run_of_desk(explore(one).session.painter.desk) is None
    page, _ = first._repr_mimebundle_()
    assert "run of" in page["text/html"]
    assert ET.fromstring(page["text/html"]).tag == "div"


def test_outside_a_notebook_a_program_is_html() -> None:
    data, _ = program()._repr_mimebundle_()
    text = data["text/html"]
    assert "partial.add_replicated" in text
    assert "<script" not in text
    assert "<style" not in text, "it would be one of the whole notebook"
    assert ET.fromstring(text).tag == "div"
    report, _ = verify(program())._repr_mimebundle_()
    assert "partial.add_replicated" in report["text/html"]
    run, _ = run_of("ab" * 20)._repr_mimebundle_()
    assert "numpy" in run["text/html"]
    assert "0.5" in run["text/html"]


def test_html_of_a_program_holds_no_markup_of_its_names() -> None:
    hostile = hostile_program()
    for text in (
        hostile._repr_mimebundle_()[0]["text/html"],
        report_html(verify(hostile)),
        run_html(RunRecord({"name": HOSTILE[0]}, {"name": HOSTILE[1]}, {}, {}, {}, (), Columns(), {HOSTILE[2]: "x"})),
    ):
        tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(text).iter()}
        assert not tags & {"script", "img", "iframe"}


def test_views_that_are_gone_are_gone() -> None:
    made = graph_view(program(), selection=SharedSelection())
    import weakref

    gone = weakref.ref(made.session)
    pn.panel(made)
    del made
    gc.collect()
    assert gone() is None


def test_the_core_shows_text_where_there_is_no_app() -> None:
    script = """
import sys
sys.modules["dtir_app"] = None
import dtir, importlib.util
from dtir.importers import load_path
assert not {"panel", "bokeh", "param"} & set(sys.modules)
from dtir.schema import display
display.find_spec = lambda name: None
assert dtir.VerificationReport(())._repr_mimebundle_() is None
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert issubclass(dtir.DistributedTaskIR, Displayed)
