"""Loading the FILE arguments of a command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dtir.cli.command import Console, failure
from dtir.cli.progress import Progress
from dtir.importers import Imported, load_path, open_set
from dtir.schema.diagnostics import Diagnostic


def load_each(files: Sequence[str], console: Console, system: str | None = None) -> Iterator[tuple[str, Imported]]:
    """Load files one after the other, each when it is asked for, with a progress line.

    A file that holds several programs gives each of them, named ``FILE#PROGRAM``. Traces of the ranks of one job, named one
    by one or as the folder that holds them, give one program of all these ranks. A declaration (`DistributionSpec`) gives a
    program together with the system of atoms of another file.

    Raises:
        Failure: standard input is named twice.
    """
    if system is not None:
        from dtir.cli.systems import lowered

        yield from ((name, lowered(name, system).imported) for name in files)
        return
    if list(files).count("-") > 1:
        raise failure("cli.usage", "standard input (-) is named twice; it can be read once", hint="name it once")
    sets = _together(files)
    with Progress(console, len(sets)) as progress:
        for name, members in sets:
            progress.step(name)
            loaded = open_set(members) if members else load_path(name)
            if not loaded.others:
                yield name, loaded
                continue
            for one in (replace(loaded, others=()), *loaded.others):
                yield f"{name}#{one.label.rpartition('#')[2]}", one


def _together(files: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """What is opened: a name, with the files of the ranks that are one program, or with none for a file alone."""
    if len(files) == 1 and not os.path.isdir(files[0]):
        return [(files[0], ())]  # nothing to look for: a file alone is read once
    from dtir.importers.several import Sniffed, files_in, group, sniff

    found: list[tuple[str, tuple[str, ...]]] = []
    named: list[tuple[str, Sniffed]] = []
    for name in files:
        inside = files_in(name) if name != "-" and os.path.isdir(name) else []
        if inside:
            sets = [one for one in group([(item, sniff(item)) for item in inside]) if one.files]
            found += [(name if len(sets) == 1 else one.name, one.files) for one in sets]
        else:
            named.append((name, Sniffed(None) if name == "-" else sniff(name)))
    for one in group(named):
        found.append((one.name, one.files if one.joined else ()))
    return found


def load_one(files: str | Sequence[str], chosen: str | None, console: Console, system: str | None = None) -> Imported:
    """The one program of a file (of several files of ranks), or the chosen one of several.

    Raises:
        Failure: the file holds several programs and none, or an unknown one, was chosen.
    """
    names = [files] if isinstance(files, str) else list(files)
    name = names[0]
    loaded = dict(load_each(names, console, system))
    if len(loaded) == 1 and chosen is None:
        return next(iter(loaded.values()))
    known = {key.rpartition("#")[2]: one for key, one in loaded.items()} if len(loaded) > 1 else {}
    if chosen in known:
        return known[chosen]
    shown = ", ".join(list(known)[:10]) + (f", ... ({len(known)} in all)" if len(known) > 10 else "")
    if not known:
        raise failure("cli.usage", f"{name} holds one program", hint="leave --program out")
    asked = "holds several programs" if chosen is None else f"holds no program {chosen!r}"
    raise failure("cli.usage", f"{name} {asked}", hint=f"name one with --program: {shown}")


def merged(first: Iterable[Diagnostic], further: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings of two sources, in order: what reading found, and what a judge finds beyond it."""
    earlier = tuple(first)
    known = set(earlier)
    return (*earlier, *(item for item in further if item not in known))
