"""Saying on standard error why an input or a command could not be dealt with."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.cli.command import Console
from dtir.cli.terminal import printable
from dtir.schema.diagnostics import Diagnostic, Severity

LINES_SHOWN = 10


def report(name: str | None, diagnostics: Sequence[Diagnostic], console: Console) -> None:
    """Write ``dtir: FILE: message [code]`` for each error, with its hint, and how many more there are."""
    style = console.error_style
    # What went wrong, not what was remarked on the way.
    wrong = [item for item in diagnostics if item.severity is Severity.ERROR] or list(diagnostics)
    for item in wrong[:LINES_SHOWN]:
        subject = f"{printable(name)}: " if name and name not in item.message else ""
        where = f"{printable('.'.join(item.path))}: " if item.path else ""
        message = style.severity(item.severity, printable(item.message))
        console.err.write(f"dtir: {subject}{where}{message} [{item.code}]\n")
        if item.hint:
            console.err.write(f"      hint: {printable(item.hint)}\n")
    if len(wrong) > LINES_SHOWN:
        console.err.write(f"      ... {len(wrong) - LINES_SHOWN} more; --format json lists them all\n")
