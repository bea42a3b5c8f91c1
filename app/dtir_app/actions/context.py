"""What an action works with: the state, what the graph shows, and ways to open a program and to speak to the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dtir_app.frames.outline import reveal, unfolded
from dtir_app.frames.tables import page_of, row_of, sorted_rows
from dtir_app.refresh import Painter
from dtir_app.scenes import Place, valid_place
from dtir_app.selection import Selection, task_of
from dtir_app.state import State
from dtir_app.store import Store

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """One session's means.

    Args:
        state: what is changed.
        painter: what the graph shows, for clicks into it.
        open_program: opens a program by its key.
        tell: sends a message to the page's bridge.
    """

    state: State
    painter: Painter
    open_program: Callable[[str], None]
    tell: Callable[..., None]

    @property
    def store(self) -> Store:
        """The open program; actions that need none never ask for it."""
        store = self.state.store
        assert store is not None
        return store

    def select(self, selection: Selection, *, camera: str = "reveal", **more: object) -> None:
        """Select everywhere at once: graph place, table page and outline follow."""
        state, store = self.state, self.store
        changes = state.selection_fields(selection, camera=camera) | self._table_fields(selection) | more
        task = task_of(store, selection)
        if task >= 0:
            changes["outline"] = unfolded(state.outline, reveal(store, task))
        changes.setdefault("finding", self._finding_of(selection))
        state.param.update(**changes)

    def _table_fields(self, selection: Selection) -> dict[str, object]:
        state, store = self.state, self.store
        row = row_of(store, state.table, selection)
        if row < 0:
            return {}
        page = page_of(sorted_rows(store, state.table, state.filters, state.sort, state.descending), row)
        return {"table_page": page} if page >= 0 else {}

    def _finding_of(self, selection: Selection) -> int:
        """The finding that is gone through stays it as long as it speaks of what is selected."""
        rows = self.store.findings_of(selection.kind, selection.index) if selection else []
        return self.state.finding if self.state.finding in rows else rows[0] if rows else -1

    def go(self, place: Place, **more: object) -> None:
        """Show another place of the graph."""
        if valid_place(self.store, place):
            self.state.param.update(place=place, window=None, camera="fit", **more)


def whole(number: object) -> int:
    """A number of a message as a whole number; -1 when it is none."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not abs(number) < 2**53:
        return -1
    return int(number)
