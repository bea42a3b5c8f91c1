"""What one session looks at. No widgets, no figures; everything that is shown follows from these fields and a `Store`."""

from __future__ import annotations

from dataclasses import dataclass

import param

from dtir_app.filters import Filters
from dtir_app.frames.outline import FIRST
from dtir_app.frames.windows import Window
from dtir_app.items import Folding
from dtir_app.scenes import Place, default_folds, first_place, home_of, scene, scope_of, showing
from dtir_app.selection import NOTHING, Selection, task_of
from dtir_app.store import Opened, Store

VIEWS = ("overview", "graph", "mesh", "tensor", "finding", "timeline", "traffic", "diff", "memory", "run")
"""In the order of the tabs; those of `dtir_app.panels` come last."""
TABLES = ("diagnostics", "collectives", "tasks", "tensors")


@dataclass(frozen=True, slots=True)
class Notice:
    """A message above the page: its tone (``error``, ``warning``, ``info``), a sentence, and lines of detail."""

    tone: str = ""
    text: str = ""
    lines: tuple[tuple[str, str, str], ...] = ()
    more: str = ""


QUIET = Notice()


class State(param.Parameterized):
    """The session's one source of truth; several fields are changed by one ``state.param.update(...)``."""

    opened = param.ClassSelector(class_=Opened, default=None, allow_None=True, doc="the open program")
    program_key = param.String("", doc="what the library knows it by")
    view = param.Selector(default="overview", objects=list(VIEWS))
    selection = param.ClassSelector(class_=Selection, default=NOTHING, constant=False)
    finding = param.Integer(-1, doc="row of the finding that is gone through; -1 none")
    filters = param.ClassSelector(class_=Filters, default=Filters())
    query = param.String("", doc="text in the search box")

    place = param.ClassSelector(class_=tuple, default=(), doc="where the graph view is; see dtir_app.scenes")
    folded = param.Dict(default={}, doc="choices of folding by place (Folding), where they differ from the default")
    window = param.ClassSelector(class_=Window, default=None, allow_None=True, doc="the part of the graph in sight")
    camera = param.String("fit", doc="what the camera does next: fit, go, reveal, centre, box (the window) or stay")
    pinned = param.ClassSelector(class_=tuple, default=(), doc="tasks that stay marked, in the order of pinning")

    table = param.Selector(default="collectives", objects=list(TABLES))
    sort = param.String("")
    descending = param.Boolean(False)
    table_page = param.Integer(0, bounds=(0, None))

    outline = param.Dict(default={"0": FIRST}, doc="unfolded rows of the outline with the span of children to show")
    mesh_axes = param.ClassSelector(class_=frozenset, default=frozenset())
    mesh_columns = param.ClassSelector(class_=frozenset, default=None, allow_None=True)
    mesh_at = param.Dict(default={})
    tensor_values = param.Dict(default={}, doc="which of several operands and results is shown, by side")
    tensor_dims = param.Dict(default={}, doc="picked dims by value")
    tensor_at = param.Dict(default={}, doc="picked blocks by value")

    options = param.Dict(default={}, doc="what was chosen in the panels: by panel, then by choice")

    dark = param.Boolean(False)
    gallery = param.Boolean(False, doc="whether the page of programs is open")
    busy = param.String("", doc="what is being done; empty when nothing is")
    notice = param.ClassSelector(class_=Notice, default=QUIET)

    @property
    def store(self) -> Store | None:
        """The open program's columns."""
        return self.opened.store if self.opened is not None else None

    def folding(self, place: Place | None = None) -> Folding:
        """What is folded at a place, the one in sight unless another is given."""
        at = self.place if place is None else place
        if self.store is None:
            return Folding()
        return self.folded.get(at) or default_folds(self.store, at)

    def program_fields(self, opened: Opened, key: str) -> dict[str, object]:
        """The changes that go with another program: everything that speaks of the old one starts anew."""
        return {
            "opened": opened,
            "program_key": key,
            "selection": NOTHING,
            "finding": -1,
            "filters": Filters(),
            "query": "",
            "place": first_place(opened.store) if opened.store is not None else (),
            "folded": {},
            "window": None,
            "pinned": (),
            "camera": "fit",
            "sort": "",
            "descending": False,
            "table_page": 0,
            "outline": {"0": FIRST},
            "table": default_table(opened.store) if opened.store is not None else "tasks",
            "mesh_axes": frozenset(),
            "mesh_columns": None,
            "mesh_at": {},
            "tensor_values": {},
            "tensor_dims": {},
            "tensor_at": {},
            "options": {},
            "gallery": False,
            "busy": "",
        }

    def selection_fields(self, selection: Selection, *, camera: str = "reveal") -> dict[str, object]:
        """The changes that go with another selection: the graph goes where the task is, unless it is in view there."""
        changes: dict[str, object] = {"selection": selection, "camera": camera, "tensor_values": {}}
        store = self.store
        task = task_of(store, selection) if store is not None else -1
        if store is None or task < 0:
            return changes
        place = self.place if self._holds(store, task) else home_of(store, task)
        if place != self.place:
            changes |= {"place": place, "camera": "go", "window": None}
        folding = self.folding(place)
        shown = showing(store, place, folding, task)
        if shown != folding:
            changes["folded"] = {**self.folded, place: shown}
        return changes

    def _holds(self, store: Store, task: int) -> bool:
        """Whether a task is at the place in sight."""
        if self.place and self.place[-1][0] == "block":
            return scene(store, self.place, self.folding()).item_of(task) >= 0
        return int(store.tasks.scope[task]) == scope_of(self.place)


def default_table(store: Store) -> str:
    """The table that a program opens with: errors first, then communication."""
    if store.counts()["error"]:
        return "diagnostics"
    return "collectives" if bool((store.tasks.message_bytes >= 0).any()) else "tasks"
