"""From state to page: what of the page follows from which fields. Each function draws one part; the session decides when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import param

from dtir_app.cues.case import known_of
from dtir_app.cues.warming import warming
from dtir_app.filters import filter_mask
from dtir_app.frames import bars
from dtir_app.frames.graph import GraphFrame, graph_frame, placed_of
from dtir_app.frames.graphbar import graph_bar
from dtir_app.frames.highlight import highlight
from dtir_app.frames.hits import search_hits
from dtir_app.frames.inspector import inspect
from dtir_app.frames.mesh import groups_text, mesh_frame
from dtir_app.frames.outline import outline_rows
from dtir_app.frames.overview import overview
from dtir_app.frames.placing import Placed
from dtir_app.frames.tables import row_of, table_page
from dtir_app.frames.tensors import tensor_bar, tensor_maps
from dtir_app.frames.windows import Window, is_large, whole
from dtir_app.inferred import at_hand, inferred
from dtir_app.items import Folding
from dtir_app.library import Library
from dtir_app.locked import Pen
from dtir_app.panels import PANELS, Desk, Panel
from dtir_app.panels.base import Later
from dtir_app.preparing import prepare_scene
from dtir_app.scenes import Place, Scene, has_scene, scene, scope_of
from dtir_app.selection import selection_text, task_of
from dtir_app.shell import Parts
from dtir_app.state import State
from dtir_app.store import Store
from dtir_app.text import plural

NEAR = (3.6, 5.0)
"""Levels and lanes to each side of a task that is gone to in a large picture."""
AT_ONCE = 4000
"""Task lists up to this are laid out in the event loop; longer ones by a worker."""


@dataclass(slots=True)
class Shown:
    """What the graph view shows right now, for picking and for small changes."""

    scene: Scene | None = None
    frame: GraphFrame | None = None
    key: tuple[object, ...] | None = None


class Painter:
    """Draws the parts of one page."""

    def __init__(self, state: State, parts: Parts, pen: Pen, library: Library, later: Later) -> None:
        self._state, self._parts, self._pen, self._library = state, parts, pen, library
        self.graph = Shown()
        self._warming: set[str] = set()
        self._making: object = None
        self._inferring: Store | None = None
        self._mask: tuple[object, npt.NDArray[np.bool_]] | None = None
        self.desk = Desk(state, pen, library, self.mask, later)

    def mask(self, store: Store) -> npt.NDArray[np.bool_]:
        """The tasks that the filters keep."""
        key = (id(store), self._state.filters)
        if self._mask is None or self._mask[0] != key:
            self._mask = (key, filter_mask(store, self._state.filters))
        return self._mask[1]

    # -- elements ------------------------------------------------------------------------------------------------------

    def draw_topbar(self) -> None:
        state, store = self._state, self._state.store
        at = self.graph.scene
        here = at if at is not None and self.graph.key is not None and self.graph.key[0] == id(store) else None
        hits = search_hits(store, state.query, here, state.selection) if store is not None else None
        self._parts.topbar.show(bars.topbar(state.opened, state.dark, hits))

    def draw_tabs(self) -> None:
        state = self._state
        page = "gallery" if state.gallery else "program"
        self._parts.tabs.show({"tabs": _TABS, "view": state.view, "page": page, "busy": state.busy})

    def draw_notice(self) -> None:
        notice = self._state.notice
        lines = [{"code": code, "message": message, "hint": hint} for code, message, hint in notice.lines]
        self._parts.notice.show(
            {"tone": notice.tone, "text": notice.text, "lines": lines, "more": notice.more} if notice.tone else {}
        )

    def draw_gallery(self) -> None:
        state = self._state
        cards = {
            kind: [
                {
                    "key": entry.key,
                    "name": entry.name,
                    "title": entry.title,
                    "text": entry.text,
                    "meta": entry.meta,
                    "open": entry.key == state.program_key,
                }
                for entry in self._library.entries(kind)
            ]
            for kind in ("file", "folder", "upload", "gallery")
        }
        lead = "Real programs, each with one thing to look at. Or drop a file of your own at the end of this page."
        self._parts.gallery.show(
            {
                "lead": lead,
                "files": [*cards["file"], *cards["upload"]],
                "folder": cards["folder"],
                "folder_note": self._library.listing.note,
                "programs": cards["gallery"],
                "busy": state.busy,
                "closable": state.store is not None,
            }
        )

    def draw_overview(self) -> None:
        store = self._state.store
        if store is None:
            self._parts.overview.show({"message": "No program is open." if not self._state.busy else self._state.busy})
            return
        if "overview" not in store.memo:
            made = overview(store)
            counts = store.counts()
            said = ", ".join(plural(number, name) for name, number in counts.items() if number and name != "info")
            remarks = plural(counts["info"], "remark") if counts["info"] else ""
            worst = made["worst"]
            assert isinstance(worst, dict)
            worst["summary"] = (
                ", ".join(text for text in (said, remarks) if text) or "reading and judging found nothing"
            )
            store.memo["overview"] = made
        self._parts.overview.show(store.memo["overview"])

    def draw_rail(self) -> None:
        state, store = self._state, self._state.store
        if store is None:
            self._parts.rail.show({})
            return
        mask = self.mask(store)
        shown = frozenset(np.flatnonzero(mask).tolist()) if state.filters.active else None
        rows = outline_rows(store, state.outline, state.selection, shown)
        reveal = selection_text(store, state.selection)
        self._parts.rail.show({"rows": rows, "filters": bars.filter_bar(store, state.filters, mask), "reveal": reveal})

    def _infer(self, store: Store) -> None:
        """Have the layouts of per-rank data inferred by a worker, where that was not done yet, and draw again what shows them."""
        if at_hand(store) is not None or self._inferring is store or not self._state.selection:
            return
        self._inferring = store

        def found() -> None:
            self._inferring = None
            if self._state.store is store:
                self.draw_inspector()
                self.draw_drawer()
                if self._state.view == "tensor":
                    self.draw_tensor()

        self.desk.later(self._library.work(lambda: inferred(store)), found)

    def draw_inspector(self) -> None:
        state, store = self._state, self._state.store
        if store is None:
            self._parts.inspector.show({})
            return
        if state.selection.value >= 0 or state.view == "tensor":
            self._infer(store)
        content = inspect(store, state.selection)
        if state.selection.task >= 0:
            self.warm_up(store)
        others = [("graph", "in graph"), ("mesh", "ranks"), ("tensor", "shard map")]
        if state.selection:
            content["show"] = [{"view": view, "label": label} for view, label in others if view != state.view]
        self._parts.inspector.show(content)

    def warm_up(self, store: Store) -> None:
        """Have the facts of a large program derived in another thread; the inspector says the rest when they are there."""
        work = warming(store)
        if work is not None and store.digest not in self._warming:
            self._warming.add(store.digest)
            self.desk.later(work, partial(self._warmed, store))

    def _warmed(self, store: Store) -> None:
        self._warming.discard(store.digest)
        if self._state.store is store and known_of(store).ready:
            self.draw_inspector()

    def draw_drawer(self) -> None:
        state, store = self._state, self._state.store
        if store is None:
            self._parts.drawer.show({})
            return
        page = table_page(
            store,
            state.table,
            filters=state.filters,
            sort=state.sort,
            descending=state.descending,
            page=state.table_page,
        )
        selected = state.finding if state.table == "diagnostics" else row_of(store, state.table, state.selection)
        more = {
            "tabs": bars.table_tabs(store),
            "selected": selected,
            "note": bars.table_note(page),
            "empty": bars.table_empty(store, state.table, state.filters),
        }
        self._parts.drawer.show(page | more)

    # -- graph ---------------------------------------------------------------------------------------------------------

    def draw_graph(self) -> None:
        """The scene, when it is another one or another part of it; the selection in it; and the camera."""
        state, store = self._state, self._state.store
        if store is None:
            self._parts.graphbar.show({})
            return
        place, folding = state.place, state.folding()
        if self.waits_for(store, place, folding):
            return
        at = scene(store, place, folding)
        placed = placed_of(store, place, at)
        key = (id(store), place, folding, state.filters)
        same = key == self.graph.key and self.graph.frame is not None
        if is_large(placed):
            self._look_ahead(store, at, placed, same)
        window = (state.window or whole(placed)) if is_large(placed) else None
        if not same or (window is not None and self._needs(window)):
            mask = self.mask(store) if state.filters.active else None
            frame = graph_frame(store, at, mask=mask, placed=placed, window=window)
            self.graph = Shown(at, frame, key)
            view = self._parts.graph
            self._pen.write("graph", lambda: view.show(frame))
        self.draw_graph_selection()

    def _look_ahead(self, store: Store, at: Scene, placed: Placed, same: bool) -> None:
        """Send the surroundings of a selected task of a large picture together with the camera, not after it has got there."""
        state, frame = self._state, self.graph.frame
        task = task_of(store, state.selection)
        position = placed.position(at.item_of(task)) if task >= 0 else -1
        if position < 0 or state.camera not in ("reveal", "go", "centre"):
            return
        x, y = float(placed.x[position]), float(placed.y[position])
        drawn = frame.window if same and frame is not None and not frame.dense else None
        if drawn is None or not drawn.covers(x, y):
            with param.parameterized.discard_events(state):
                state.window = Window(x - NEAR[0], x + NEAR[0], y - NEAR[1], y + NEAR[1])
            state.camera = "box"

    def waits_for(self, store: Store, place: Place, folding: Folding) -> bool:
        """Whether a scene is first to be made by a worker, since that takes long; drawing goes on when it is there."""
        if has_scene(store, place, folding) or store.scopes[scope_of(place)].task_count <= AT_ONCE:
            return False
        key = (id(store), place, folding)
        if self._making != key:
            self._making = key
            self._state.busy = "Laying out the graph …"
            self.desk.later(self._library.work(partial(prepare_scene, store, place, folding)), self._made)
        return True

    def _made(self) -> None:
        self._making = None
        self._state.busy = ""
        self.draw_graph()

    def _needs(self, window: Window) -> bool:
        """Whether the data of a large picture do not serve a part of it."""
        frame = self.graph.frame
        if frame is None or frame.window is None:
            return True
        drawn = frame.window
        outside = not (drawn.covers(window.left, window.top) and drawn.covers(window.right, window.bottom))
        part = window.widened()
        return outside or (frame.dense and (part.width < 0.7 * drawn.width or part.height < 0.7 * drawn.height))

    def draw_graph_selection(self) -> None:
        state, store, shown = self._state, self._state.store, self.graph
        if store is None or shown.scene is None or shown.frame is None:
            return
        task = task_of(store, state.selection)
        found = highlight(shown.scene, shown.frame.placed, task, state.pinned, shown.frame.window)
        view = self._parts.graph
        self._pen.write("graph-selection", lambda: view.highlight(found.rings, found.edges))
        if state.camera != "stay":
            self.move_camera(found.centre)
            state.camera = "stay"  # a change of filters, say, leaves the picture where it is
        mask = self.mask(store)
        self._parts.graphbar.show(
            graph_bar(store, state.place, shown.scene, shown.frame, state.filters, state.selection, mask)
        )
        self._parts.graphfoot.show(bars.graph_foot(store, state.selection, state.pinned))

    def draw_peek(self, item: int) -> None:
        """An item of the scene and its neighbours, besides what is selected; -1 for none."""
        shown, view = self.graph, self._parts.graph
        if shown.scene is None or shown.frame is None:
            return
        task = shown.scene.first_task(item) if 0 <= item < shown.scene.count else -1
        found = highlight(shown.scene, shown.frame.placed, task)
        self._pen.write("graph-peek", lambda: view.point_out(found.rings, found.edges))

    def move_camera(self, centre: tuple[float, float] | None) -> None:
        state, view, shown = self._state, self._parts.graph, self.graph
        assert shown.frame is not None
        placed = shown.frame.placed
        how = state.camera
        width, height = placed.width, placed.height
        if how == "box" and state.window is not None:
            part = state.window
            width, height = part.width, part.height
            centre = ((part.left + part.right) / 2, (part.top + part.bottom) / 2)
        self._pen.write("graph-camera", lambda: view.look(how, width, height, centre))

    # -- mesh and tensor -----------------------------------------------------------------------------------------------

    def draw_mesh(self) -> None:
        state, store = self._state, self._state.store
        if store is None:
            self._parts.meshbar.show({})
            self._parts.meshside.show({})
            return
        frame = mesh_frame(store, state.selection, axes=state.mesh_axes, columns=state.mesh_columns, at=state.mesh_at)
        view = self._parts.mesh
        self._pen.write("mesh", lambda: view.show(frame.cells, frame.arrows, frame.ticks, frame.extent))
        self._parts.meshbar.show(bars.mesh_bar(store, frame, state.selection, state.mesh_axes))
        self._parts.meshside.show(bars.mesh_side(frame, groups_text(frame)))

    def draw_tensor(self) -> None:
        state, store = self._state, self._state.store
        if store is None:
            self._parts.tensorbar.show({})
            return
        maps = tensor_maps(
            store, state.selection, picked=state.tensor_values, dims=state.tensor_dims, at=state.tensor_at
        )
        self._parts.tensorbar.show(tensor_bar(store, maps))
        for view, (_, _, _, frame) in zip((self._parts.before, self._parts.after), maps, strict=False):
            self._pen.write(
                f"tensor-{view.figure.name}",
                lambda view=view, frame=frame: view.show(frame.tiles, frame.ticks),
            )

    def panel(self, name: str) -> Panel:
        """The parts of one of `dtir_app.panels`."""
        return self._parts.panels[name]

    def draw_panel(self, name: str) -> None:
        """One of `dtir_app.panels`."""
        self._parts.panels[name].draw(self.desk)

    def restyle(self) -> None:
        """The other theme for the figures."""
        dark = self._state.dark
        parts = self._parts
        views = [parts.graph, parts.mesh, parts.before, parts.after]
        views += [figure for panel in parts.panels.values() for figure in panel.figures.values()]
        self._pen.write("theme", lambda: [view.restyle(dark) for view in views])  # type: ignore[func-returns-value]


_TABS = (*bars.VIEW_TABS, *({"name": kind.name, "label": kind.label, "help": kind.help} for kind in PANELS))

Draw = Callable[[Painter], None]

ALWAYS: Mapping[str, tuple[frozenset[str], Draw]] = {
    "notice": (frozenset({"notice"}), Painter.draw_notice),
    "tabs": (frozenset({"view", "gallery", "busy"}), Painter.draw_tabs),
    "topbar": (frozenset({"opened", "query", "dark", "selection", "place", "folded"}), Painter.draw_topbar),
    "gallery": (frozenset({"opened", "program_key", "gallery", "busy"}), Painter.draw_gallery),
    "rail": (frozenset({"opened", "outline", "selection", "filters"}), Painter.draw_rail),
    "inspector": (frozenset({"opened", "selection", "view"}), Painter.draw_inspector),
    "drawer": (
        frozenset({"opened", "selection", "finding", "table", "sort", "descending", "table_page", "filters"}),
        Painter.draw_drawer,
    ),
    "theme": (frozenset({"dark"}), Painter.restyle),
}
"""Parts that are always in sight: the fields they follow from, and how they are drawn."""

VIEWS: Mapping[str, tuple[frozenset[str], Draw]] = {
    "overview": (frozenset({"opened", "busy"}), Painter.draw_overview),
    "graph": (frozenset({"opened", "selection", "filters", "place", "folded", "window", "pinned"}), Painter.draw_graph),
    "mesh": (frozenset({"opened", "selection", "mesh_axes", "mesh_columns", "mesh_at"}), Painter.draw_mesh),
    "tensor": (frozenset({"opened", "selection", "tensor_values", "tensor_dims", "tensor_at"}), Painter.draw_tensor),
    **{kind.name: (kind.fields, partial(Painter.draw_panel, name=kind.name)) for kind in PANELS},
}
"""Views, drawn while in sight; one that was out of sight when a field changed is drawn when it comes into sight."""

WATCHED = sorted(set().union(*(fields for fields, _ in (*ALWAYS.values(), *VIEWS.values()))))
