"""What ``dtir export`` writes: a page, an SVG or PNG picture of a view. Each function takes the command's options and gives bytes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from dtir.cli.command import Console, Failure, failure
from dtir.cli.inputs import load_one
from dtir.importers.base import Imported
from dtir_app.drawing import standalone
from dtir_app.drawing.svg import Drawing
from dtir_app.exporting.browser import NoBrowser, photograph, screenshot
from dtir_app.exporting.page import offline_page
from dtir_app.exporting.recording import Amount
from dtir_app.exporting.stage import Stage
from dtir_app.exporting.words import caption_of, words_svg
from dtir_app.library import open_program
from dtir_app.selection import NOTHING, Selection, find_selection, of_task, of_value, selection_text
from dtir_app.state import VIEWS
from dtir_app.store import Opened, Store

PNG_PX = (1440, 900)
LARGEST_PX = 8192


def make_html(options: argparse.Namespace, console: Console) -> bytes:
    """The program as one page that needs no server.

    Raises:
        Failure: the input holds no program.
    """
    return offline_page(_opened(options, console)).encode("utf-8", "replace")


def make_svg(options: argparse.Namespace, console: Console) -> bytes:
    """A picture of a view, in vectors.

    Raises:
        Failure: no such view or selection, or the input holds no program.
    """
    return _svg(_wanted(options, console)).encode("utf-8", "replace")


def make_png(options: argparse.Namespace, console: Console) -> bytes:
    """A picture of a view, in pixels; the SVG as a browser draws it.

    Raises:
        Failure: as for the SVG, or no browser was found.
    """
    wanted = _wanted(options, console)
    try:
        if wanted.view == "overview":  # cards, as the page shows them
            page = offline_page(wanted.opened, amount=Amount(detailed=0, pictured=0, places=1, rows=100))
            theme = "dark" if wanted.dark else "light"
            return photograph(page, f"#v=overview&embed=1&theme={theme}", wanted.size_px or PNG_PX)
        text = _svg(wanted)
        return screenshot(text, wanted.size_px or _natural(text))
    except NoBrowser as error:
        raise failure("cli.missing_browser", str(error), hint=error.hint) from error


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be drawn.

    Args:
        opened: the program.
        view: one of the views.
        selection: what is selected in it.
        dark: the theme.
        size_px: width and height; None for the natural size.
    """

    opened: Opened
    view: str
    selection: Selection
    dark: bool
    size_px: tuple[int, int] | None


def _wanted(options: argparse.Namespace, console: Console) -> Wanted:
    view = options.view or "graph"
    if view not in VIEWS:
        raise failure("cli.usage", f"--view {view}: there is no such view", hint=f"one of {', '.join(VIEWS)}")
    opened = _opened(options, console)
    assert opened.store is not None
    selection = _selection(opened.store, options.select) if options.select else _first(opened.store, view)
    return Wanted(opened, view, selection, bool(options.dark), options.size)


def _opened(options: argparse.Namespace, console: Console) -> Opened:
    imported: Imported = load_one(options.file, options.program, console)
    opened = open_program(imported)
    if opened.store is None:
        raise Failure(imported.diagnostics)
    return opened


def _first(store: Store, view: str) -> Selection:
    """What a view shows that needs a selection, where none was named: the worst finding's, else the first communication."""
    if view not in ("mesh", "tensor"):
        return NOTHING
    from dtir_app.exporting.recording import selections

    found = selections(store)
    return found[0][1] if found else NOTHING


def _selection(store: Store, text: str) -> Selection:
    """A selection by what names it: ``node:...`` or ``value:...`` as links write it, the beginning of such an id, or a name.

    Raises:
        Failure: nothing or several things are meant.
    """
    if found := find_selection(store, text):
        return found
    ids = [
        one
        for one in (*map(of_task, range(len(store.tasks))), *map(of_value, range(len(store.values))))
        if selection_text(store, one).startswith(text) or selection_text(store, one).split(":")[1].startswith(text)
    ]
    named = [of_task(row) for row, name in enumerate(store.tasks.name) if name == text]
    named = named or [of_value(row) for row, name in enumerate(store.values.name) if name == text]
    meant = named or (ids if len(text) >= 4 else [])
    if len(meant) == 1:
        return meant[0]
    if not meant:
        raise failure(
            "cli.usage", f"--select {text}: there is no such task or tensor", hint="dtir show lists their names"
        )
    shown = ", ".join(selection_text(store, one) for one in meant[:4])
    raise failure("cli.usage", f"--select {text}: {len(meant)} are meant", hint=f"name one by its id: {shown}")


def _svg(wanted: Wanted) -> str:
    stage = Stage(wanted.opened, dark=wanted.dark)
    if wanted.selection:
        stage.session.select(wanted.selection)
    stage.state.view = wanted.view
    stage.show(wanted.view)
    drawings = list(stage.drawings_of(wanted.view, dark=wanted.dark).values())
    title = caption_of(stage, wanted.view)
    if not drawings:
        return words_svg(stage, wanted.view, dark=wanted.dark, size_px=wanted.size_px, title=title)
    return standalone(
        drawings,
        stage.styles,
        title=title,
        captions=_captions(stage, drawings),
        dark=wanted.dark,
        size_px=wanted.size_px,
    )


def _captions(stage: Stage, drawings: list[Drawing]) -> list[str]:
    """What stands above each of several pictures."""
    maps = stage.payload("tensorbar").get("maps", []) if drawings[0].name.startswith("tensor") else []
    if not isinstance(maps, list):
        return []
    return [
        " ".join(str(one[name]) for name in ("side", "name", "type") if one.get(name))
        + (f" ({one['badge']})" if one.get("badge") else "")
        for one in maps
    ]


def _natural(text: str) -> tuple[int, int]:
    """The size that an SVG file says, made to fit what browsers draw."""
    import re

    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', text)
    width, height = (float(found[1]), float(found[2])) if found else (float(PNG_PX[0]), float(PNG_PX[1]))
    scale = min(1.0, LARGEST_PX / max(width, height, 1.0))
    return max(1, round(width * scale)), max(1, round(height * scale))
