"""Loading the FILE arguments of a command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dtir.cli.command import Console, failure
from dtir.cli.progress import Progress
from dtir.importers import Imported, load_path
from dtir.schema.diagnostics import Diagnostic


def load_each(files: Sequence[str], console: Console) -> Iterator[tuple[str, Imported]]:
    """Load files one after the other, each when it is asked for, with a progress line.

    Raises:
        Failure: standard input is named twice.
    """
    if list(files).count("-") > 1:
        raise failure("cli.usage", "standard input (-) is named twice; it can be read once", hint="name it once")
    with Progress(console, len(files)) as progress:
        for name in files:
            progress.step(name)
            yield name, load_path(name)


def merged(first: Iterable[Diagnostic], further: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings of two sources, in order: what reading found, and what a judge finds beyond it."""
    earlier = tuple(first)
    known = set(earlier)
    return (*earlier, *(item for item in further if item not in known))
