"""The finding that is gone through, as a picture of its own; without one, pictures of what is selected."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar

from dtir.verify.catalogue import TABLE
from dtir_app.assets import script
from dtir_app.components import Element, Message
from dtir_app.cues import picture_of, picture_of_selection
from dtir_app.cues.case import known_of
from dtir_app.cues.verdicts import MOST_REPAIRS
from dtir_app.cues.warming import BUSY, warming
from dtir_app.frames.communication import sentence
from dtir_app.panels.base import Cell, Desk, Figure, Kind, Row
from dtir_app.selection import Selection, selection_text
from dtir_app.state import Notice
from dtir_app.store import SEVERITIES, Store

if TYPE_CHECKING:
    from dtir_app.actions.context import Context

NAME = "finding"
_ROW = "finding:"
_LOG = logging.getLogger(__name__)
_POOL = ThreadPoolExecutor(1, thread_name_prefix="dtir-judge")
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
        self._running: set[tuple[str, tuple[str, ...]]] = set()
        self._waiting: set[str] = set()

    def draw(self, desk: Desk) -> None:
        """Show the finding gone through; without one the selection; without that the worst finding."""
        state, store = desk.state, desk.store
        if store is None:
            self.element.show({"message": "No program is open."})
            return
        about = subject(store, state.finding, state.selection)
        if not about:
            text = "Reading and judging found nothing. Select a task or tensor to see it in the same marks."
            self.element.show({"message": text})
            return
        work = warming(store)
        if work is not None:
            self.element.show({"message": BUSY})
            self._once(desk, store, work)
            return
        known = state.options.get(NAME, {})
        options = known if known.get("about", about) == about else {}
        row = int(about.removeprefix(_ROW)) if about.startswith(_ROW) else -1
        if row >= 0:
            picture, head = picture_of(store, row, options), _head(store, row)
        else:
            chosen = state.selection
            picture = picture_of_selection(store, chosen.task, chosen.value, options)
            names = store.tasks.name if chosen.task >= 0 else store.values.name
            text = sentence(store, chosen.task) if chosen.task >= 0 else store.values.layout[chosen.value]
            head = {"severity": "", "code": names[chosen.index], "name": "nothing was found here", "message": text}
        self.element.show({"head": head, "picture": picture.payload()})
        for made in picture.wants:
            self._judge(desk, store, made)

    def _once(self, desk: Desk, store: Store, work: Future[None]) -> None:
        """Draw when the facts of a large program are there."""
        if store.digest in self._waiting:
            return
        self._waiting.add(store.digest)

        def done() -> None:
            self._waiting.discard(store.digest)
            fault = work.exception()
            if fault is not None:
                _LOG.error("deriving facts failed", exc_info=fault)
                self.element.show({"message": f"The explorer itself failed here ({type(fault).__name__}: {fault})."})
            elif desk.store is store:
                self.draw(desk)

        desk.later(work, done)

    def _judge(self, desk: Desk, store: Store, made: tuple[str, ...]) -> None:
        """Let the value-level judge run in another thread, once; draw again when it has spoken."""
        key = (store.digest, made)
        if key in self._running:
            return
        self._running.add(key)
        work = _POOL.submit(known_of(store).verdicts.judge, made)

        def done() -> None:
            self._running.discard(key)
            fault = work.exception()
            if fault is not None:
                _LOG.error("the value-level judge failed", exc_info=fault)
                text = f"The judge itself failed on this program ({type(fault).__name__}: {fault}). Please report it."
                desk.state.notice = Notice("error", text)
            elif desk.store is store:
                self.draw(desk)

        desk.later(work, done)


def by_severity(store: Store) -> list[int]:
    """Rows of findings, worst first, as the keys go through them."""
    return sorted(range(len(store.findings)), key=lambda row: (SEVERITIES.index(store.findings[row].severity), row))


def subject(store: Store, row: int, selection: Selection) -> str:
    """What is shown: ``finding:3``, or the text of a selection; empty when there is nothing to show."""
    if 0 <= row < len(store.findings):
        return f"{_ROW}{row}"
    if selection:
        return selection_text(store, selection)
    order = by_severity(store)
    return f"{_ROW}{order[0]}" if order else ""


def _head(store: Store, row: int) -> dict[str, object]:
    """What stands above the picture of a finding."""
    finding, order = store.findings[row], by_severity(store)
    return {
        "severity": finding.severity,
        "code": finding.code,
        "name": _NAMES.get(finding.code, ""),
        "message": finding.message,
        "count": f"{order.index(row) + 1} of {len(order)}",
    }


def _choose(context: Context, message: Message) -> None:
    """A switch of the picture."""
    _remember(context, **{str(message.get("name", ""))[:40]: str(message.get("value", ""))[:200]})


def _remember(context: Context, **choices: object) -> None:
    """Choices belong to one subject: another one starts anew."""
    state = context.state
    about = subject(context.store, state.finding, state.selection)
    known = state.options.get(NAME, {})
    kept = known if known.get("about", about) == about else {}
    state.options = {**state.options, NAME: {**kept, **choices, "about": about}}


def _repair(context: Context, message: Message) -> None:
    """Try a repair, keep it, or start over; the judge runs again."""
    name = str(message.get("name", ""))[:2000]
    known = context.state.options.get(NAME, {})
    made, tried = tuple(known.get("made", ())), tuple(known.get("tried", ()))
    match name.partition(":"):
        case ("try", _, text) if text not in tried and text in known_of(context.store).verdicts.offered(made):
            _remember(context, tried=(*tried, text))
        case ("keep", _, text) if text in tried and len(made) < MOST_REPAIRS:
            _remember(context, made=(*made, text), tried=(), bad="")
        case ("over", _, _):
            _remember(context, made=(), tried=(), bad="")
        case _:
            return


KIND = Kind(
    name=NAME,
    label="Finding",
    help="the finding gone through, as a picture, with what mends it",
    fields=frozenset({"opened", "finding", "selection", "options"}),
    make=FindingPanel,
    rows=(Row((Cell("finding", grows=True),)),),
    actions={"finding-choose": _choose, "finding-repair": _repair},
)
