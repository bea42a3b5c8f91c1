"""A page without a browser: the explorer's own session, put into a state, and read from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import param

from dtir_app.components import Element
from dtir_app.drawing import Styles, draw_figure
from dtir_app.drawing.svg import Drawing
from dtir_app.library import Library
from dtir_app.panels.base import Figure
from dtir_app.rows import rows_of_views
from dtir_app.selection import NOTHING, Selection
from dtir_app.session import Session
from dtir_app.store import Opened, Store


class Stage:
    """One program on a page that nobody sees.

    Args:
        opened: the program; it has a store.
        dark: the theme.
    """

    def __init__(self, opened: Opened, *, dark: bool = False) -> None:
        assert opened.store is not None
        self.store: Store = opened.store
        self.session = Session(Library(), dark=dark)
        self.state = self.session.state
        self.state.param.update(**self.state.program_fields(opened, ""))
        self.elements: dict[str, Element] = {
            name: made for name, made in self.session.parts.elements.items() if isinstance(made, Element)
        }
        self.figures = self.session.parts.figures
        self.styles = Styles()
        """The classes of everything that is drawn on this stage."""
        self._drawn: dict[tuple[str, str, str], Drawing] = {}
        self._cells = {
            view: [cell.name for row in rows for cell in row.cells] for view, rows in rows_of_views().items()
        }

    @contextmanager
    def selected(self, selection: Selection, finding: int = -1) -> Iterator[None]:
        """Something selected without drawing anything: what is wanted is drawn by name."""
        with param.parameterized.discard_events(self.state):
            self.state.param.update(selection=selection, finding=finding, tensor_values={}, camera="stay")
        try:
            yield
        finally:
            with param.parameterized.discard_events(self.state):
                self.state.param.update(selection=NOTHING, finding=-1, tensor_values={})

    def show(self, view: str) -> None:
        """Draw a view as it is in the present state."""
        painter = self.session.painter
        match view:
            case "overview":
                painter.draw_overview()
            case "graph":
                painter.draw_graph()
            case "mesh":
                painter.draw_mesh()
            case "tensor":
                painter.draw_tensor()
            case _:
                painter.draw_panel(view)

    def payload(self, element: str) -> dict[str, object]:
        """What an element shows."""
        text = self.elements[element].payload
        return json.loads(text) if text else {}

    def elements_of(self, view: str) -> dict[str, str]:
        """JSON of the elements of a view by name."""
        return {name: self.elements[name].payload for name in self._cells[view] if name in self.elements}

    def drawings_of(self, view: str, *, dark: bool | None) -> dict[str, Drawing]:
        """The figures of a view that show something, by name."""
        made: dict[str, Drawing] = {}
        names = [name for name in self._cells[view] if name in self.figures]
        if view == "tensor":  # the second figure keeps what it showed when one tensor is shown alone
            maps = self.payload("tensorbar").get("maps", [])
            names = names[: len(maps)] if isinstance(maps, list) else names
        for name in names:
            # Many selections give one picture, and drawing takes a hundred times as long as comparing.
            key = (name, str(dark), _content(self.figures[name]))
            if key not in self._drawn:
                self._drawn[key] = draw_figure(self.figures[name], self.styles, dark=dark)
            if self._drawn[key].body:
                made[name] = self._drawn[key]
        return made


def _content(view: Figure) -> str:
    """A digest of everything that a figure would draw."""
    digest = hashlib.blake2b(digest_size=20)
    for renderer in view.figure.renderers:
        for name, column in renderer.data_source.data.items():
            items = column.tolist() if isinstance(column, np.ndarray) else column
            digest.update(f"{renderer.data_source.name}.{name}={items!r};".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
