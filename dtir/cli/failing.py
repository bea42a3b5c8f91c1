"""Saying on standard error why an input or a command could not be dealt with."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.cli.command import Console
from dtir.cli.places import text_place
from dtir.cli.terminal import printable
from dtir.explain import explain
from dtir.schema.diagnostics import Diagnostic, Severity

LINES_SHOWN = 10


def report(name: str | None, diagnostics: Sequence[Diagnostic], console: Console) -> None:
    """Write ``dtir: FILE: message [code]`` for each error, with its hint (its own, else that of its code), and how many more there are."""
    style = console.error_style
    # What went wrong, not what was remarked on the way.
    wrong = [item for item in diagnostics if item.severity is Severity.ERROR] or list(diagnostics)
    for item in wrong[:LINES_SHOWN]:
        message = style.severity(item.severity, printable(item.message))
        console.err.write(f"dtir: {printable(_subject(name, item))}{message} [{item.code}]\n")
        entry = explain(item.code)
        hint = item.hint or (entry.hint if entry else None)
        if hint:
            console.err.write(f"      hint: {printable(hint)}\n")
    if len(wrong) > LINES_SHOWN:
        console.err.write(f"      ... {len(wrong) - LINES_SHOWN} more; --format json lists them all\n")


def _subject(name: str | None, item: Diagnostic) -> str:
    """What stands before the message: ``FILE:3:14: `` for a place in a text, else ``FILE: path: ``."""
    place = text_place(item.path)
    if place:
        return ":".join(str(part) for part in (name or "", place.line, place.column) if part is not None) + ": "
    parts = [name] if name and name not in item.message else []
    if item.path:
        parts.append(".".join(item.path))
    return "".join(f"{part}: " for part in parts)
