"""The bundled programs: real ones, each with a sentence that says what it shows. Read when opened, not before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dtir_app.assets import assets_folder


@dataclass(frozen=True, slots=True)
class Example:
    """One bundled program.

    Args:
        name: short stable name.
        path: its file.
        title: what it is called in the gallery.
        text: what it shows, in one sentence.
        meta: mesh, size and format in a few words.
        digest: of its content, as an import of the file gives it.
    """

    name: str
    path: Path
    title: str
    text: str
    meta: str
    digest: str


@cache
def examples() -> tuple[Example, ...]:
    """The bundled programs in the order of the index; none where the folder has no index."""
    folder = assets_folder() / "programs"
    index = folder / "index.json"
    if not index.is_file():
        return ()
    return tuple(
        Example(item["name"], folder / item["file"], item["title"], item["text"], item["meta"], item["digest"])
        for item in json.loads(index.read_text(encoding="utf-8"))
    )
