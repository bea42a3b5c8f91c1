"""The finding that is gone through, as a picture of its own; without one, pictures of what is selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from dtir.explain import explain
from dtir.verify.catalogue import TABLE
from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.cues import picture_of
from dtir_app.panels.base import Cell, Desk, Figure, Kind, Row, choose
from dtir_app.store import SEVERITIES, Store

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

NAME = "finding"
_NAMES = {entry.code: entry.name for entry in TABLE}


class FindingPicture(Element):
    """The picture of a finding, with its words and switches."""

    _esm: ClassVar[str] = script("picture") + script("finding")


class FindingPanel:
    """The parts of the view."""

    def __init__(self, dark: bool) -> None:
        del dark  # the picture is made of elements, which follow the page's theme
        self.element = FindingPicture()
        self.elements: Mapping[str, Element] = {"finding": self.element}
        self.figures: Mapping[str, Figure] = {}

    def draw(self, desk: Desk) -> None:
        """Show the finding gone through, else the worst one."""
        state, store = desk.state, desk.store
        if store is None:
            self.element.show({"message": "No program is open."})
            return
        row = shown_row(store, state.finding)
        options = state.options.get(NAME, {})
        if row < 0:
            self.element.show({"message": "Reading and judging found nothing."})
            return
        finding = store.findings[row]
        picture = picture_of(store, row, options if options.get("row", row) == row else {})
        entry = explain(finding.code)
        order = by_severity(store)
        head = {
            "severity": finding.severity,
            "code": finding.code,
            "name": _NAMES.get(finding.code, ""),
            "message": finding.message,
            "why": entry.why if entry is not None else "",
            "count": f"{order.index(row) + 1} of {len(order)}",
        }
        self.element.show({"head": head, "picture": picture.payload()})


def by_severity(store: Store) -> list[int]:
    """Rows of findings, worst first, as the keys go through them."""
    return sorted(range(len(store.findings)), key=lambda row: (SEVERITIES.index(store.findings[row].severity), row))


def shown_row(store: Store, row: int) -> int:
    """The finding to show: the one gone through, else the worst; -1 when there is none."""
    if 0 <= row < len(store.findings):
        return row
    order = by_severity(store)
    return order[0] if order else -1


def _choose(context: Context, message: Message) -> None:
    """A switch of the picture."""
    row = shown_row(context.store, context.state.finding)
    choose(context.state, NAME, row=row, **{str(message.get("name", ""))[:40]: str(message.get("value", ""))[:200]})


KIND = Kind(
    name=NAME,
    label="Finding",
    help="the finding gone through, as a picture, with what mends it",
    fields=frozenset({"opened", "finding", "options"}),
    make=FindingPanel,
    rows=(Row((Cell("finding", grows=True),)),),
    actions={"finding-choose": _choose},
)
