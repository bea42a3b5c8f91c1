"""The page that needs no server: one HTML file with everything in it, that may load nothing and send nothing."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path

from dtir_app.assets import css, script
from dtir_app.drawing.svg import escaped
from dtir_app.exporting.recording import Amount, Recorded, record
from dtir_app.exporting.stage import Stage
from dtir_app.panels import PANELS
from dtir_app.store import Opened
from dtir_app.theme import css_variables

LIMIT_BYTES = 5_000_000
"""Size of a page at most: what mail and code review take."""

_TEMPLATE = Path(__file__).with_name("offline.html")
_EXPORT = re.compile(r"^export function render\b", re.MULTILINE)


def offline_page(opened: Opened, *, amount: Amount | None = None, limit_bytes: int = LIMIT_BYTES) -> str:
    """A program as one HTML file.

    What is in it follows from the program alone, so equal programs give equal files. A program that would make a larger file than
    `limit_bytes` is written with less detail, which the page says.

    Args:
        opened: the program; it has a store.
        amount: how much of it; as much as fits when None.
        limit_bytes: size of the file at most.
    """
    stage = Stage(opened)
    wanted = amount or _amount_for(len(stage.store.tasks) + len(stage.store.values))
    while True:
        page = _page(record(stage, wanted))
        if amount is not None or len(page) <= limit_bytes or wanted.detailed < 10:
            return page
        wanted = wanted.less()


LARGE = 20_000
"""Tasks and tensors beyond which every description takes long: what a selection looks like is derived from the whole program."""


def _amount_for(items: int) -> Amount:
    """How much of a program is tried first."""
    return Amount() if items <= LARGE else Amount(detailed=500, pictured=60, places=4, rows=3000, searched=20_000)


def _page(recorded: Recorded) -> str:
    views = "".join(f":root[data-view={kind.name}] .view-{kind.name} {{ display: flex; }}" for kind in PANELS)
    title = f"{recorded.content['name']} – dtir"
    parts = {
        "title": escaped(title),
        "style": f"{css_variables()}{css('page')}{views}\n{recorded.css}",
        "element_style": css("element"),
        "dom": script("dom"),
        "modules": _modules(recorded.modules),
        "runtime": script("offline"),
        "data": _packed(recorded.content),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _TEMPLATE.read_text(encoding="utf-8"))


def _modules(modules: Mapping[str, str]) -> str:
    """The scripts of the elements, each in a scope of its own, as functions by number; and which element uses which."""
    texts = list(dict.fromkeys(modules.values()))
    blocks = [
        f"{{\n{_EXPORT.sub(f'window.dtir_renders[{number}] = function render', text)}\n}}"
        for number, text in enumerate(texts)
    ]
    used = json.dumps({name: texts.index(text) for name, text in sorted(modules.items())})
    return f"window.dtir_renders = []; window.dtir_modules = {used};\n" + "\n".join(blocks)


def _packed(content: Mapping[str, object]) -> str:
    """JSON, packed, as letters that cannot end a script element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "surrogatepass"), 9, mtime=0)).decode("ascii")
