"""What a view of its own is made of: elements and figures, rows to put them in, fields it follows from, actions of its buttons.

A panel module imports nothing of `dtir_app.actions` when it is loaded (they know the panels); an action takes the `Context` that
it is given. What a person chose in a panel lies in ``state.options[name]``; `choose` changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from bokeh.models import Plot

from dtir_app.components import Element, Message
from dtir_app.locked import Pen
from dtir_app.state import State
from dtir_app.store import Store

if TYPE_CHECKING:
    from dtir_app.actions.context import Context
    from dtir_app.library import Library


Later = Callable[["Future[Any]", Callable[[], None]], None]


class Figure(Protocol):
    """A view object: a Bokeh figure that can be drawn in the other theme."""

    figure: Plot

    def restyle(self, dark: bool) -> None:
        """Colours of a theme."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a row.

    Args:
        name: of the element or figure that stands there.
        grows: it takes what room is left.
        label: what a screen reader says of a figure, and where the same is found in elements.
        width_px: width of a cell that does not grow, beside one that does; 0 leaves it to its content.
    """

    name: str
    grows: bool = False
    label: str = ""
    width_px: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Cells side by side; the row grows when one of them does."""

    cells: tuple[Cell, ...]

    @property
    def grows(self) -> bool:
        return any(cell.grows for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Desk:
    """What a panel draws from.

    Args:
        state: of the session; `store` is the open program.
        pen: raw Bokeh models are written through it (`dtir_app.locked`).
        library: the programs of the server.
        mask: the tasks that the filters keep.
        later: calls in the event loop when work that was begun elsewhere is done, unless the page is gone by then.
    """

    state: State
    pen: Pen
    library: Library
    mask: Callable[[Store], npt.NDArray[np.bool_]]
    later: Later

    @property
    def store(self) -> Store | None:
        """The open program's columns."""
        return self.state.store


class Panel(Protocol):
    """The parts of one view of one page."""

    elements: Mapping[str, Element]
    figures: Mapping[str, Figure]

    def draw(self, desk: Desk) -> None:
        """Show what follows from the state, without a program too."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A panel that has something going on for its page alone."""

    def close(self) -> None:
        """The page is gone: end it."""
        ...


Action = Callable[["Context", Message], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One view.

    Args:
        name: as in addresses and messages; one of `dtir_app.state.VIEWS`.
        label: on the tab.
        help: what the view shows, in a few words.
        fields: of the state that it follows from.
        make: its parts for one page; takes whether the theme is dark.
        rows: how they are laid out, from the top.
        actions: what its messages do, by type; types of all panels are different.
    """

    name: str
    label: str
    help: str
    fields: frozenset[str]
    make: Callable[[bool], Panel]
    rows: tuple[Row, ...]
    actions: Mapping[str, Action] = field(default_factory=dict)


def choice(state: State, panel: str, name: str, default: Any) -> Any:
    """What was chosen in a panel."""
    return state.options.get(panel, {}).get(name, default)


def choose(state: State, panel: str, **choices: object) -> None:
    """Choose in a panel; everything else stays as it was."""
    state.options = {**state.options, panel: {**state.options.get(panel, {}), **choices}}
