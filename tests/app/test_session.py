"""A session without a browser: messages in, state and what is drawn out."""

from __future__ import annotations

import gc
import json
import queue
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from dtir_app.actions import HANDLERS
from dtir_app.gallery import examples
from dtir_app.library import Library
from dtir_app.selection import NOTHING, of_task, of_value
from dtir_app.session import Session
from dtir_app.state import VIEWS

from dtir.importers import load_path
from tests.app.build import example
from tests.helpers.layered import layered


class Page:
    """A session of one bundled program, spoken to as the browser does."""

    def __init__(self, name: str = "faults", query: str = "") -> None:
        self.library = Library((), [example(name), *(item for item in examples() if item.name != name)])
        self.library.open(f"gallery:{name}").result()
        self.session = Session(self.library, query=query or f"?p={example(name).digest}")
        self.sent: list[dict[str, object]] = []
        self.parts.bridge._send_msg = self.sent.append
        self.send("ready", dark=False)

    @property
    def parts(self) -> object:
        return self.session._parts

    @property
    def state(self) -> object:
        return self.session.state

    def send(self, kind: str, **message: object) -> None:
        self.session._heard(kind, message)

    def shown(self, element: str) -> dict[str, object]:
        return json.loads(getattr(self.parts, element).payload)

    def key(self, key: str) -> None:
        self.send("key", key=key)

    @property
    def title(self) -> object:
        return self.shown("inspector")["title"]


@pytest.fixture
def page() -> Page:
    return Page()


def test_a_selection_echoes_everywhere(page: Page) -> None:
    page.send("view", view="graph")
    page.session._context.select(of_task(4))
    assert page.title == "sum_tp"
    assert page.shown("graphfoot")["title"] == "sum_tp"
    assert [row["label"] for row in page.shown("rail")["rows"] if row["selected"]] == ["sum_tp"]
    page.send("table", table="tasks")
    assert page.shown("drawer")["selected"] == 4
    assert "selected" in page.parts.graph.rings.data["which"]
    page.send("view", view="mesh")
    assert page.shown("meshbar")["title"] == "all-reduce sum_tp"
    page.send("view", view="tensor")
    assert [item["name"] for item in page.shown("tensorbar")["maps"]] == ["biased", "y"]
    said = [message["text"] for message in page.sent if message["type"] == "announce"]
    assert said[-1] == "Selected sum_tp. All-reduce (sum) over tp: 2 × 4 ranks, 2 KiB a group."


def test_only_what_is_in_sight_is_drawn(page: Page) -> None:
    assert page.parts.mesh.cells.data["x"] == []
    page.send("view", view="mesh")
    assert len(page.parts.mesh.cells.data["x"]) == 8


def test_figures_stand_on_the_page_once_their_view_is_looked_at() -> None:
    page = Page(query=f"?p={example('faults').digest}&v=mesh")
    roots = page.session.page._render_items

    def standing() -> set[str]:
        return {name for name, (root, _) in roots.items() if name.endswith("_figure") and root.object.children}

    assert standing() == {"mesh_figure"}
    page.send("view", view="tensor")
    assert standing() == {"mesh_figure", "tensor_before_figure", "tensor_after_figure"}
    before = roots["mesh_figure"][0].object.children[0]
    for view in VIEWS:
        page.send("view", view=view)
    assert standing() == {name for name in roots if name.endswith("_figure")}
    assert roots["mesh_figure"][0].object.children == [before], "it is put there once"


def test_a_row_of_any_table_selects(page: Page) -> None:
    for table, row, title in [("tasks", 2, "down"), ("collectives", 7, "gather_act"), ("tensors", 3, "bias")]:
        page.send("table", table=table)
        page.send("row", row=row)
        assert page.title == title
    page.send("table", table="diagnostics")
    page.send("row", row=1)
    assert page.title == "update"
    assert page.state.finding == 1


def test_findings_are_gone_through_worst_first_and_round(page: Page) -> None:
    names = []
    for _ in range(4):
        page.key("]")
        names.append(page.title)
    assert names == ["add_bias", "update", "gather_act", "add_bias"]
    page.key("[")
    assert page.title == "gather_act"
    assert page.shown("drawer")["table"] == "diagnostics"
    assert page.shown("drawer")["selected"] == 2


def test_communication_is_gone_through_in_program_order(page: Page) -> None:
    names = []
    for key in "cccC":
        page.key(key)
        names.append(page.title)
    assert names == ["sum_tp", "gather_act", "sum_tp", "gather_act"]


def test_arrows_walk_along_edges() -> None:
    page = Page()
    page.send("view", view="graph")
    page.session._context.select(of_task(0))
    page.key("ArrowRight")
    assert page.title == "act"
    page.key("ArrowRight")
    first = page.title
    page.key("ArrowDown")
    assert page.title != first or page.title == "gather_act"
    page.key("ArrowLeft")
    assert page.title == "act"
    page.key("ArrowLeft")
    page.key("ArrowLeft")
    assert page.title == "up"


def test_a_click_into_the_graph_selects_and_beside_it_clears() -> None:
    page = Page()
    page.send("view", view="graph")
    nodes = page.parts.graph.nodes.data
    place = nodes["title"].index("down")
    from dtir_app.actions import graphing

    graphing.tapped(page.session._context, nodes["x"][place], nodes["y"][place])
    assert page.title == "down"
    graphing.tapped(page.session._context, -3, -3)
    assert page.state.selection == NOTHING
    assert page.title == "parallel_mlp_with_faults"


def test_blocks_open_and_the_way_back_is_shown() -> None:
    page = Page("transformer_train")
    page.send("view", view="graph")
    from dtir_app.actions import graphing

    nodes = page.parts.graph.nodes.data
    graphing.opened_at(page.session._context, nodes["x"][0], nodes["y"][0])
    assert page.state.place[-1][0] == "block"
    assert len(page.shown("graphbar")["crumbs"]) == 2
    page.send("leave", depth=0)
    assert page.state.place == ()
    page.session._context.select(of_task(0))
    page.key("e")
    assert page.state.place[-1][0] == "block"
    page.key("x")
    assert page.state.place == ()


def test_a_task_elsewhere_takes_the_graph_there() -> None:
    page = Page("scan_layers")
    page.send("view", view="graph")
    store = page.state.store
    inside = next(
        row for row in range(len(store.tasks)) if store.tasks.executions[row] == 4 and store.tasks.family[row] == 1
    )
    page.session._context.select(of_task(inside))
    assert page.state.place == (("region", int(store.tasks.scope[inside])),)
    assert "selected" in page.parts.graph.rings.data["which"]
    assert page.shown("graphbar")["crumbs"][-1]["text"].endswith("×4")


def test_folding_is_a_choice_of_the_place() -> None:
    page = Page("transformer_train")
    page.send("view", view="graph")
    assert page.shown("graphbar")["limit"] == (
        "Showing 32 of 1,311 tasks and 35 blocks — 9 of 12 instances of 3 families folded, 3 differ; "
        "30 items that only other instances have not drawn; 453 local tasks folded into 35 blocks."
    )
    page.send("fold", folded=False)
    assert 300 < len(page.parts.graph.nodes.data["x"]) < 600
    page.send("unfold-all")
    assert len(page.parts.graph.nodes.data["x"]) == 1311
    assert page.shown("graphbar")["limit"] == ""
    assert page.shown("graphbar")["fold"] == {"label": "Fold local work", "folded": True}


def test_an_instance_is_stepped_to_and_the_selection_goes_along() -> None:
    page = Page("transformer_train")
    page.send("view", view="graph")
    family = page.shown("graphbar")["families"][0]
    assert (family["number"], family["position"]) == (1, "2 of 4")
    at = page.session._painter.graph.scene
    assert at is not None
    store = page.state.store
    task = next(
        at.first_task(item)
        for item in range(at.count)
        if at.copies[item] == 4 and at.family[item] == 0 and store.tasks.family[at.first_task(item)] == 1
    )
    page.session._context.select(of_task(task))
    nodes = len(page.parts.graph.nodes.data["x"])
    page.send("repeat-step", key=family["key"], step=1)
    other = page.state.selection.task
    assert other > task
    assert store.tasks.operation[other] == store.tasks.operation[task]
    assert page.shown("graphbar")["families"][0]["position"] == "3 of 4"
    assert len(page.parts.graph.nodes.data["x"]) == nodes
    page.send("key", key=",")
    assert page.state.selection.task == task
    page.send("repeat-step", key=family["key"], number=99)
    assert page.state.selection.task == task
    # Selecting a task that another instance stands for shows its instance.
    page.session._context.select(of_task(other))
    assert page.shown("graphbar")["families"][0]["position"] == "3 of 4"


def test_one_family_is_unfolded_and_folded_again() -> None:
    page = Page("transformer_train")
    page.send("view", view="graph")
    folded = len(page.parts.graph.nodes.data["x"])
    key = page.shown("graphbar")["families"][0]["key"]
    page.send("repeat-fold", key=key, folded=False)
    assert len(page.parts.graph.nodes.data["x"]) > folded
    assert [family["folded"] for family in page.shown("graphbar")["families"]] == [False, True, True]
    page.send("repeat-fold", key=key, folded=True)
    assert len(page.parts.graph.nodes.data["x"]) == folded
    page.send("key", key="r")
    assert not any(family["folded"] for family in page.shown("graphbar")["families"])
    page.send("key", key="r")
    assert len(page.parts.graph.nodes.data["x"]) == folded


def test_pinned_tasks_stay_marked(page: Page) -> None:
    page.send("view", view="graph")
    page.send("key", key="p")
    assert page.state.pinned == ()
    page.session._context.select(of_task(1))
    page.send("key", key="p")
    page.session._context.select(of_task(3))
    assert page.parts.graph.rings.data["which"].count("pinned") == 1
    assert [link["text"] for link in page.shown("graphfoot")["pinned"]] == [page.state.store.tasks.name[1]]
    page.send("unpin")
    assert "pinned" not in page.parts.graph.rings.data["which"]


def test_filters_fade_the_graph_and_narrow_the_tables(page: Page) -> None:
    page.send("view", view="graph")
    page.send("filter", group="families", item=1)
    assert page.parts.graph.nodes.data["alpha"].tolist().count(1.0) == 2
    page.send("table", table="tasks")
    assert page.shown("drawer")["note"] == "2 of 8 rows match the filters"
    assert "2 of 8 tasks match the filters, others faded" in page.shown("graphbar")["limit"]
    page.send("filter-clear")
    assert page.shown("drawer")["note"] == ""
    page.send("filter", group="bytes", item=4096)
    assert page.shown("drawer")["total"] == 1


def test_search_lists_hits_and_keeps_them(page: Page) -> None:
    page.send("search", text="kind:all_gather")
    hits = page.shown("topbar")["hits"]
    assert hits["count"] == "1 hit"
    page.send("select", key=hits["items"][0]["key"])
    assert page.title == "gather_act"
    page.send("keep", text="kind:all_gather")
    assert page.state.filters.text == "kind:all_gather"
    page.send("search", text="colour:red")
    assert "there is no key 'colour'" in page.shown("topbar")["hits"]["problem"]
    page.send("search", text="")
    assert page.shown("topbar")["hits"] is None


def test_sorting_turns_round_on_the_second_click(page: Page) -> None:
    page.send("table", table="collectives")
    page.send("sort", column="message_bytes")
    assert [row["row"] for row in page.shown("drawer")["rows"]] == [7, 4]
    page.send("sort", column="message_bytes")
    assert [row["row"] for row in page.shown("drawer")["rows"]] == [4, 7]
    page.send("sort", column="no_such_column")
    assert page.state.sort == "message_bytes"


def test_a_file_is_offered_with_what_is_shown(page: Page) -> None:
    page.send("table", table="tasks")
    page.send("export", format="csv")
    made = page.sent[-1]
    assert (made["type"], made["name"], made["mime"]) == ("download", "parallel_mlp_with_faults.tasks.csv", "text/csv")
    assert len(str(made["text"]).splitlines()) == 9
    page.send("export", format="json")
    assert json.loads(str(page.sent[-1]["text"]))["total"] == 8


def test_the_address_follows_and_is_followed(page: Page) -> None:
    page.session._context.select(of_task(4))
    page.send("view", view="mesh")
    address = [message for message in page.sent if message["type"] == "address"][-1]["query"]
    assert f"p={example('faults').digest}" in address
    assert "v=mesh" in address
    again = Page(query=address)
    assert again.title == "sum_tp"
    assert again.state.view == "mesh"
    page.send("address", search=f"?p={example('faults').digest}&v=graph")
    assert page.state.selection == NOTHING
    assert page.state.view == "graph"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?p=" + "0" * 40, "is not open on this server"),
        ("?p=zz", "is no digest"),
        ("?v=nowhere", "there is no view"),
        ("?s=node:" + "0" * 32, "is not in this program"),
        ("?s=rubbish", "names no task or tensor"),
    ],
)
def test_a_bad_address_is_told_and_something_is_shown(query: str, told: str) -> None:
    page = Page(query=query)
    assert told in page.shown("notice")["text"]
    assert page.title == "parallel_mlp_with_faults"
    page.send("dismiss")
    assert page.shown("notice") == {}


def test_a_file_of_the_served_folder_is_opened_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_bytes(example("faults").path.read_bytes())
    library = Library((), examples(), folder=tmp_path)
    for key in ("folder:own.yaml", library.first):
        library.open(key).result()
    session = Session(library, query="?f=own.yaml&v=mesh")
    assert (session.state.program_key, session.state.view) == ("folder:own.yaml", "mesh")
    other = Session(library, query="?f=../own.yaml")
    assert "there is no file '../own.yaml'" in other.state.notice.text


def test_the_beginning_of_a_digest_is_enough() -> None:
    assert Page("ulysses", query=f"?p={example('ulysses').digest[:8]}").state.program_key == "gallery:ulysses"


def test_another_program_starts_anew(page: Page) -> None:
    page.session._context.select(of_task(4))
    page.send("filter", group="families", item=1)
    page.library.open("gallery:ulysses").result()
    page.send("open-program", key="gallery:ulysses")
    assert page.state.selection == NOTHING
    assert not page.state.filters.active
    assert page.shown("topbar")["digest"] == example("ulysses").digest
    page.send("open-program", key="gallery:no-such-program")
    assert "no longer open" in page.shown("notice")["text"]


def test_the_start_page_lies_over_an_open_program() -> None:
    library = Library((), examples())
    library.open(library.first).result()
    session = Session(library)
    assert session.state.gallery
    assert session.state.store is not None
    assert len(json.loads(session._parts.gallery.payload)["programs"]) == len(examples()) >= 6


def test_escape_steps_back_one_thing_at_a_time(page: Page) -> None:
    page.session._context.select(of_task(4))
    page.send("gallery")
    page.key("Escape")
    assert not page.state.gallery
    assert page.title == "sum_tp"
    page.key("Escape")
    assert page.state.selection == NOTHING


def test_mesh_and_tensor_can_be_arranged() -> None:
    page = Page("transformer_64")
    page.send("view", view="mesh")
    page.send("mesh-group", axis="axis0")
    assert page.shown("meshbar")["title"] == "axis0×axis2 groups"
    page.send("mesh-place", axis="axis0")
    assert [axis["across"] for axis in page.shown("meshbar")["axes"]] == [False, False, True]
    page.send("view", view="tensor")
    store = page.state.store
    value = next(row for row, name in enumerate(store.values.name) if len(store.value_records[row].type.shape) == 3)
    page.session._context.select(of_value(value))
    page.send("tensor-dim", side="tensor", which=0, dim=0)
    assert page.shown("tensorbar")["maps"][0]["dims"][0] == 0
    page.send("tensor-dim", side="tensor", which=1, dim=0)
    assert page.shown("tensorbar")["maps"][0]["dims"] == [page.shown("tensorbar")["maps"][0]["dims"][0], 0]


def test_the_theme_changes_figures_and_page(page: Page) -> None:
    light = page.parts.graph.figure.background_fill_color
    page.send("theme", dark=True)
    assert page.parts.graph.figure.background_fill_color != light
    assert {"type": "theme", "dark": True} in page.sent


FIELDS = ("row", "key", "scope", "page", "depth", "group", "item", "axis", "view", "side", "dim", "value", "which")


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize(
    "message",
    [
        {},
        dict.fromkeys(FIELDS, "x"),
        dict.fromkeys(FIELDS, -5),
        {"row": 1e300, "item": {}, "axis": [], "side": 2, "dim": True, "key": None, "axes": [1], "text": ["?"]},
    ],
)
def test_a_message_that_makes_no_sense_does_nothing_bad(kind: str, message: dict[str, object]) -> None:
    page = Page()
    page.send(kind, **message)
    assert page.state.view in VIEWS
    assert page.shown("inspector")["title"]


def test_messages_before_a_program_is_open_do_nothing_bad() -> None:
    session = Session(Library((), ()))
    for kind in HANDLERS:
        session._heard(kind, {"key": "]", "row": 1})
    assert session.state.store is None
    assert session.state.gallery in (True, False)


def test_a_closed_session_is_let_go() -> None:
    library = Library((), [example("faults")])
    library.open(library.first).result()

    def make() -> weakref.ref[object]:
        session = Session(library)
        session.page  # noqa: B018 - the page refers to the session's parts
        session.close()
        return weakref.ref(session.state)

    alive = [make() for _ in range(3)]
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3


def test_sessions_do_not_see_each_other() -> None:
    library = Library((), [example("faults")])
    library.open(library.first).result()
    one, other = Session(library), Session(library)
    one._context.select(of_task(4))
    one.state.view = "mesh"
    assert other.state.selection == NOTHING
    assert other.state.view == "overview"
    assert one.state.store is other.state.store


Drop = Callable[[str, bytes], None]


def drop(page: Page, name: str, data: bytes) -> None:
    page.parts.upload.value = {name: data}
    page.session._wanted.result()
    page.session._take(page.session._wanted, "", None)


def test_a_dropped_file_is_opened(page: Page) -> None:
    drop(
        page,
        "own.hlo",
        b"HloModule own\n\nENTRY main {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n",
    )
    assert page.shown("topbar")["name"] == "own"
    assert page.shown("notice")["text"] == "own.hlo is open."
    assert [entry.kind for entry in page.library.entries("upload")] == ["upload"]


@pytest.mark.parametrize("data", [b"", b"\x00\x01", b"{}", b"not a program", b'{"a":' * 2000, b"\x1f\x8b broken"])
def test_a_dropped_file_that_is_no_program_is_told_and_the_open_one_stays(page: Page, data: bytes) -> None:
    drop(page, "bad.txt", data)
    notice = page.shown("notice")
    assert notice["tone"] == "error"
    assert notice["text"] == "bad.txt could not be opened."
    assert notice["lines"]
    assert page.shown("topbar")["name"] == "parallel_mlp_with_faults"


class Ticks:
    """Stands for a document; says which thread asked for a tick."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.threads: set[str] = set()

    def add_next_tick_callback(self, callback: Callable[[], None]) -> None:
        self.threads.add(threading.current_thread().name)
        self.waiting.append(callback)

    def tick(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


class Slow:
    """A session whose program is being read until `finish`."""

    def __init__(self, outcome: Callable[[Path], object] = load_path) -> None:
        self.go = threading.Event()
        self.posted: queue.Queue[Callable[[], object]] = queue.Queue()
        self.document = Ticks()

        def read(path: Path) -> object:
            assert self.go.wait(30)
            return outcome(path)

        self.library = Library([example("faults").path], [example("ulysses")], read_path=read)
        self.session = Session(self.library, document=self.document, post=self.posted.put)

    def finish(self) -> None:
        self.go.set()
        self.posted.get(timeout=30)()
        self.document.tick()

    @property
    def state(self) -> object:
        return self.session.state


def test_what_takes_long_is_said_and_then_shown() -> None:
    slow = Slow()
    assert slow.state.busy == "Reading parallel_mlp_faults.dtir.yaml …"
    assert slow.state.store is None
    slow.finish()
    assert slow.state.busy == ""
    assert slow.state.store is not None
    # A worker never touches the document: what it adds while a session is being made can get lost.
    assert slow.document.threads == {"MainThread"}


def test_a_page_that_was_closed_meanwhile_is_left_alone() -> None:
    slow = Slow()
    slow.session.close()
    slow.finish()
    assert slow.document.waiting == []
    assert slow.state.store is None


def test_a_later_choice_overtakes_an_earlier_one() -> None:
    slow = Slow()
    slow.session._heard("open-program", {"key": "gallery:ulysses"})
    slow.go.set()
    for _ in range(2):
        slow.posted.get(timeout=30)()
    slow.document.tick()
    slow.document.tick()
    assert slow.state.program_key == "gallery:ulysses"


def test_a_fault_of_our_own_is_said_and_the_page_lives(caplog: pytest.LogCaptureFixture) -> None:
    def fail(path: Path) -> object:
        raise ZeroDivisionError(path.name)

    slow = Slow(fail)
    slow.finish()
    assert slow.state.busy == ""
    assert "ZeroDivisionError" in slow.state.notice.text
    assert "opening a program failed" in caplog.text


def test_a_very_large_program_opens_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtir_app.session.LARGE", 5)
    page = Page("faults")
    assert page.state.notice.tone == "info"
    assert page.state.notice.text.startswith("parallel_mlp_faults.dtir.yaml has 8 tasks and takes about ")
    monkeypatch.undo()
    assert Page("faults").state.notice.tone == ""


def test_a_far_task_of_a_large_picture_comes_with_its_surroundings(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text(layered(100, 4).to_json(), encoding="utf-8")
    library = Library([path])
    library.open("file:0").result()
    session = Session(library, query="?v=graph")
    session._heard("ready", {"dark": False})
    session._heard("unfold-all", {})
    assert session.painter.graph.frame.dense
    session.select(of_task(3000))
    frame = session.painter.graph.frame
    assert not frame.dense
    assert 3000 in [int(task) for task in frame.nodes["task"]]
    assert session.parts.graph.camera.data["kind"] == ["box"]
    before = frame
    session.select(of_task(int(frame.nodes["task"][len(frame.nodes["task"]) // 2])))
    assert session.painter.graph.frame is before
    assert session.parts.graph.camera.data["kind"] == ["reveal"]
    session._heard("fit", {})
    assert session.parts.graph.camera.data["kind"] == ["fit"]
