"""A view of a program in a cell: the explorer's own session and parts, laid out by Panel instead of the page's template."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import panel as pn
import param
from panel.io.notebook import push_notebook
from panel.viewable import Viewer

from dtir.execute.record import RunRecord
from dtir_app.components import Element
from dtir_app.notebook.opening import kernel_library
from dtir_app.notebook.sharing import SharedSelection, shared_selection
from dtir_app.notebook.start import in_notebook, start
from dtir_app.notebook.static import static_html
from dtir_app.panels.base import Row, choose
from dtir_app.panels.sides import SIDES, attach
from dtir_app.planning import base_of
from dtir_app.rows import rows_of_views
from dtir_app.selection import NOTHING, find_selection, selection_text
from dtir_app.session import Session
from dtir_app.state import TABLES, VIEWS
from dtir_app.store import Opened, Store
from dtir_app.theme import css_block

_LOG = logging.getLogger(__name__)

INSPECTOR_PX, TABLE_PX = 320, 200
_CSS = """
:host { background: var(--paper); color: var(--text); font: 13px/1.45 var(--font); }
:host { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
"""


class _Shown(Viewer):
    """What all views in cells have in common: a session, a shared selection, a layout.

    Args:
        opened: the program.
        selection: what is selected; the one that views of the program share when None.
        dark: the theme.
        run: what was measured of the program, to be set against what is planned.
        profile: what the kernel's library calls the machine that the planned side is of.
    """

    selection = param.ClassSelector(class_=SharedSelection, doc="what is selected, shared with other views")

    def __init__(
        self,
        opened: Opened,
        *,
        selection: SharedSelection | None = None,
        dark: bool = False,
        run: RunRecord | None = None,
        profile: str | None = None,
    ) -> None:
        assert opened.store is not None
        super().__init__(selection=selection or shared_selection(opened.digest))
        self.opened = opened
        self.store: Store = opened.store
        self.dark = dark
        self.run = run
        self.session = Session(kernel_library(), dark=dark)
        self.session.state.param.update(**self.session.state.program_fields(opened, ""))
        if profile is not None:
            choose(self.session.state, SIDES, profile=profile)
        if run is not None:
            attach(self.session.painter.desk, base_of(self.store), run, "given here")
        self._layout: pn.Column | None = None
        self.session.pen.written = self._written
        self._linked = False
        self._follow()
        self.session.state.param.watch(self._selected, "selection")
        self._watcher = self.selection.param.watch(lambda _: self._follow(), "key")

    # -- one selection -------------------------------------------------------------------------------------------------

    def _selected(self, event: param.parameterized.Event) -> None:
        self.selection.key = selection_text(self.store, self.session.state.selection)

    def _follow(self) -> None:
        """Somebody else selected something."""
        key = self.selection.key
        if key == selection_text(self.store, self.session.state.selection):
            return
        found = find_selection(self.store, key)
        if found:
            self.session.select(found)
        else:
            self.session.state.selection = NOTHING

    def _written(self) -> None:
        """A figure changed: in a notebook it has to be pushed."""
        if self._layout is not None:
            push_notebook(self._layout)

    # -- layout --------------------------------------------------------------------------------------------------------

    def _place(self, name: str, **how: Any) -> pn.viewable.Viewable:
        """An element or a figure as part of a layout."""
        elements = {key: made for key, made in self.session.parts.elements.items() if isinstance(made, Element)}
        if name in elements:
            elements[name].param.update(**how)
            return elements[name]
        figure = self.session.parts.figures[name].figure
        return pn.pane.Bokeh(figure, margin=0, **how)

    def _line(self, name: str) -> pn.Row:
        """An element as high as what it shows: in a row, since a column would stretch it."""
        return pn.Row(self._place(name, sizing_mode="stretch_width"), sizing_mode="stretch_width", margin=0)

    def _rows(self, rows: tuple[Row, ...]) -> pn.Column:
        """Rows of a view."""
        made = []
        for row in rows:
            sizing = "stretch_both" if row.grows else "stretch_width"
            cells = [
                self._place(
                    cell.name,
                    **(
                        {"sizing_mode": "stretch_height", "width": cell.width_px}
                        if cell.width_px
                        else {"sizing_mode": "stretch_both" if cell.grows else "stretch_width"}
                    ),
                )
                for cell in row.cells
            ]
            made.append(pn.Row(*cells, sizing_mode=sizing, margin=0))
        return pn.Column(*made, sizing_mode="stretch_both", margin=0)

    def _framed(self, *parts: pn.viewable.Viewable, height: int) -> pn.Column:
        """Parts in a box with the colours of the theme, and what downloads need."""
        bridge = self._place("bridge", sizing_mode="stretch_width", height=1)
        made = pn.Column(
            *parts,
            bridge,
            height=height,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[css_block(self.dark, ":host") + _CSS],
        )
        self._layout = made
        return made

    def _ready(self) -> pn.Column:
        raise NotImplementedError

    def __panel__(self) -> pn.viewable.Viewable:
        if self._layout is None:
            self._layout = self._ready()
        return self._layout

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Live in a kernel that somebody looks at, else a page of HTML."""
        if not in_notebook():
            return {"text/html": static_html(self.opened, self.run), "text/plain": repr(self)}, {}
        start()
        return super()._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store.name!r}, {len(self.store.tasks)} tasks)"


class ExplorerView(_Shown):
    """The whole explorer in a cell: views as tabs, the inspector, the tables.

    Args:
        opened: the program.
        view: the view to begin with.
        selection, dark, run, profile: as for every view.
        height: in pixels.

    Raises:
        ValueError: there is no such view.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        view: str | None = None,
        selection: SharedSelection | None = None,
        dark: bool = False,
        height: int = 760,
        run: RunRecord | None = None,
        profile: str | None = None,
    ) -> None:
        if view is not None and view not in VIEWS:
            raise ValueError(f"view={view!r} (str) is not one of {', '.join(VIEWS)}")
        super().__init__(opened, selection=selection, dark=dark, run=run, profile=profile)
        self._height = height
        self._views: Mapping[str, pn.Column] = {}
        if view is not None:
            self.session.state.view = view
        self.session.state.param.watch(self._turned, "view")

    def _turned(self, event: param.parameterized.Event) -> None:
        for name, made in self._views.items():
            made.visible = name == event.new

    def _ready(self) -> pn.Column:
        # A view that was never shown is empty until its tab is chosen; the session draws it then.
        self._views = {name: self._rows(rows) for name, rows in rows_of_views().items()}
        for name, made in self._views.items():
            made.visible = name == self.session.state.view
        wide = {"sizing_mode": "stretch_width"}
        main = pn.Column(self._line("tabs"), *self._views.values(), sizing_mode="stretch_both", margin=0)
        side = self._place("inspector", sizing_mode="stretch_height", width=INSPECTOR_PX)
        return self._framed(
            self._place("topbar", height=48, **wide),
            self._line("notice"),
            pn.Row(main, side, sizing_mode="stretch_both", margin=0),
            self._place("drawer", height=TABLE_PX, **wide),
            height=self._height,
        )


class SingleView(_Shown):
    """One view alone, to be put together with others.

    Args:
        opened: the program.
        view: its name.
        selection, dark, run, profile: as for every view.
        height: in pixels.
    """

    def __init__(
        self,
        opened: Opened,
        view: str,
        *,
        selection: SharedSelection | None = None,
        dark: bool = False,
        height: int = 460,
        run: RunRecord | None = None,
        profile: str | None = None,
    ) -> None:
        super().__init__(opened, selection=selection, dark=dark, run=run, profile=profile)
        self._height = height
        self.session.state.view = view

    def _ready(self) -> pn.Column:
        rows = rows_of_views()[self.session.state.view]
        return self._framed(self._rows(rows), height=self._height)


class TableView(_Shown):
    """One of the tables alone.

    Args:
        opened: the program.
        table: ``collectives``, ``diagnostics``, ``tasks`` or ``tensors``.
        selection, dark, run: as for every view.
        height: in pixels.
    """

    def __init__(
        self,
        opened: Opened,
        table: str,
        *,
        selection: SharedSelection | None = None,
        dark: bool = False,
        height: int = 320,
        run: RunRecord | None = None,
    ) -> None:
        if table not in TABLES:
            raise ValueError(f"table={table!r} (str) is not one of {', '.join(TABLES)}")
        super().__init__(opened, selection=selection, dark=dark, run=run)
        self._height = height
        self.session.state.table = table

    def _ready(self) -> pn.Column:
        return self._framed(self._place("drawer", sizing_mode="stretch_both"), height=self._height)


class InspectorView(_Shown):
    """What is to be said about the selection, alone."""

    def __init__(
        self,
        opened: Opened,
        *,
        selection: SharedSelection | None = None,
        dark: bool = False,
        height: int = 460,
        run: RunRecord | None = None,
    ) -> None:
        super().__init__(opened, selection=selection, dark=dark, run=run)
        self._height = height

    def _ready(self) -> pn.Column:
        return self._framed(self._place("inspector", sizing_mode="stretch_both"), height=self._height)
