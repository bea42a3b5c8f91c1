"""The page: its elements and figures put into the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.document import Document
from bokeh.models import Column

from dtir_app.assets import css, script
from dtir_app.components import (
    Bridge,
    Drawer,
    Gallery,
    GraphBar,
    GraphFoot,
    Inspector,
    MeshBar,
    MeshSide,
    Notice,
    Overview,
    Rail,
    Tabs,
    TensorBar,
    TopBar,
)
from dtir_app.library import UPLOAD_LIMIT_BYTES
from dtir_app.panels import PANELS, Panel
from dtir_app.panels.base import Figure
from dtir_app.rows import rows_of_views
from dtir_app.theme import css_variables
from dtir_app.views.graph import GraphView
from dtir_app.views.mesh import MeshView
from dtir_app.views.tensor import TensorView

_TEMPLATE = Path(__file__).with_name("page.html")
CHUNK_BYTES = 2_000_000
_DROP_CSS = """
.filepond--root { font: 13px var(--font); margin-bottom: 0; }
.filepond--root, .filepond--drop-label, .filepond--panel > * { background-color: var(--raised) !important; }
.filepond--root { border: 1px dashed var(--strong-line); border-radius: 6px; }
.filepond--drop-label, .filepond--drop-label label { color: var(--text); }
.filepond--label-action { text-decoration-color: var(--accent); color: var(--accent); }
"""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything of one page that is written to."""

    topbar: TopBar
    notice: Notice
    rail: Rail
    tabs: Tabs
    overview: Overview
    graphbar: GraphBar
    graphfoot: GraphFoot
    meshbar: MeshBar
    meshside: MeshSide
    tensorbar: TensorBar
    inspector: Inspector
    drawer: Drawer
    gallery: Gallery
    bridge: Bridge
    graph: GraphView
    mesh: MeshView
    before: TensorView
    after: TensorView
    upload: pn.widgets.FileDropper
    panels: Mapping[str, Panel]

    @property
    def elements(self) -> dict[str, object]:
        """The elements that send messages, by name."""
        names = (
            "topbar",
            "notice",
            "rail",
            "tabs",
            "overview",
            "graphbar",
            "graphfoot",
            "meshbar",
            "meshside",
            "tensorbar",
            "inspector",
            "drawer",
            "gallery",
            "bridge",
        )
        own = {name: getattr(self, name) for name in names}
        return own | {name: made for panel in self.panels.values() for name, made in panel.elements.items()}

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by the names that rows use."""
        own: dict[str, Figure] = {
            "graph": self.graph,
            "mesh": self.mesh,
            "tensor-before": self.before,
            "tensor-after": self.after,
        }
        return own | {name: made for panel in self.panels.values() for name, made in panel.figures.items()}


def make_parts(dark: bool, upload_bytes: int = UPLOAD_LIMIT_BYTES) -> Parts:
    """The elements and figures of one page, empty; `upload_bytes` is the size of a file that may be dropped."""
    wide = {"sizing_mode": "stretch_width"}
    return Parts(
        topbar=TopBar(**wide),
        notice=Notice(**wide),
        rail=Rail(),
        tabs=Tabs(**wide),
        overview=Overview(),
        graphbar=GraphBar(**wide),
        graphfoot=GraphFoot(**wide),
        meshbar=MeshBar(**wide),
        meshside=MeshSide(),
        tensorbar=TensorBar(**wide),
        inspector=Inspector(),
        drawer=Drawer(),
        gallery=Gallery(**wide),
        bridge=Bridge(**wide),
        graph=GraphView(dark),
        mesh=MeshView(dark),
        before=TensorView("tensor-before", dark),
        after=TensorView("tensor-after", dark),
        upload=pn.widgets.FileDropper(
            multiple=True,  # the traces of the ranks of one job, say
            max_file_size=f"{max(1, upload_bytes // 1024)}KB",
            chunk_size=CHUNK_BYTES,
            layout="compact",
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[_DROP_CSS],
        ),
        panels={kind.name: kind.make(dark) for kind in PANELS},
    )


class Page(pn.Template):
    """A template whose roots are added in one go: Bokeh walks all models anew after every root otherwise (0.35 CPU s here)."""

    def __repr__(self) -> str:
        # Panel writes all elements out anew with every one that is added, which takes longer than making them.
        return type(self).__name__

    def _init_doc(self, doc: Document | None = None, *args: Any, **kwargs: Any) -> Document:
        document = doc or pn.state.curdoc or Document()
        with document.models.freeze():
            return super()._init_doc(document, *args, **kwargs)


class Stands:
    """Where figures stand on the page: each is put there when its view is first looked at, since all of them together are most of what a
    page has to build, check, send and draw.

    The holders are raw Bokeh models, to be filled through `dtir_app.locked.Pen` as the figures are: what Panel sends goes its own way,
    and a figure's data might be there before the figure.
    """

    def __init__(self, parts: Parts) -> None:
        self._figures = parts.figures
        self.holders = {name: Column(sizing_mode="stretch_both") for name in self._figures}

    def fill(self, view: str) -> None:
        """Put the figures of a view there, once."""
        for cell in (cell for row in rows_of_views()[view] for cell in row.cells):
            holder = self.holders.get(cell.name)
            if holder is not None and not holder.children:
                holder.children = [self._figures[cell.name].figure]


def make_page(parts: Parts, stands: Stands) -> Page:
    """The template with the parts in their places."""
    page = Page(_TEMPLATE.read_text(encoding="utf-8"))
    page.add_variable("css_variables", css_variables())
    page.add_variable("page_css", css("page"))
    page.add_variable("element_css", css("element"))
    page.add_variable("dom_js", script("dom"))
    page.add_variable("panels", PANELS)
    page.add_variable("elements", frozenset(parts.elements))
    for name, element in parts.elements.items():
        page.add_panel(name, element)
    for name, holder in stands.holders.items():
        # The template names a root's model after its place; the figures' own names are for finding them.
        root = pn.pane.Bokeh(holder, sizing_mode="stretch_both", margin=0)
        page.add_panel(f"{name.replace('-', '_')}_figure", root)
    page.add_panel("upload", parts.upload)
    return page
