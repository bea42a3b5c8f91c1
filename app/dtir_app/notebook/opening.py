"""From what people have in a notebook to an open program; a few are kept, so that two cells share the work."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import TypeAlias

from dtir.cost.profile import MachineProfile
from dtir.execute.record import RunRecord
from dtir.importers import load_path
from dtir.importers.base import Imported
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import DiagnosticSet
from dtir_app.columns import build_store
from dtir_app.library import Library, open_program
from dtir_app.preparing import prepare
from dtir_app.profiles import PRESETS
from dtir_app.store import Opened

Openable: TypeAlias = DistributedTaskIR | Imported | Opened | DiagnosticSet | RunRecord | str | Path
KEPT = 8

_OPEN: OrderedDict[str, Opened] = OrderedDict()


def open_object(what: Openable) -> Opened:
    """The program of something.

    Raises:
        LookupError: a report or a run whose program is not known in this kernel.
        ValueError: a file that holds no program, with what was found in it.
        TypeError: something else.
    """
    match what:
        case Opened():
            return _kept(what)
        case DistributedTaskIR():
            digest = what.digest
            if digest in _OPEN:
                _OPEN.move_to_end(digest)
                return _OPEN[digest]
            return _kept(open_program(Imported(what, DiagnosticSet(()), "program", digest, what.name)))
        case Imported():
            return _kept(open_program(what))
        case RunRecord():
            return program_of_run(what)
        case DiagnosticSet():
            return program_of_report(what)
        case str() | Path():
            return _kept(open_program(load_path(what)))
        case _:
            raise TypeError(f"what={type(what).__name__} is no program, path, report or run record")


def run_in(what: Openable) -> RunRecord | None:
    """What a program is to be compared with: a run that was given in its place."""
    return what if isinstance(what, RunRecord) else None


def profile_named(what: str | Path | MachineProfile) -> str:
    """What this kernel calls a machine profile: a preset by name, a file, or the profile itself.

    Raises:
        ValueError: there is neither a preset nor a file of that name, or the file is no profile.
    """
    profiles = kernel_library().profiles
    if isinstance(what, MachineProfile):
        return profiles.keep(what)
    if str(what) in profiles.names:
        return str(what)
    path = Path(what)
    if not path.is_file():
        raise ValueError(f"profile={str(what)!r}: there is no such file, and the presets are {', '.join(PRESETS)}")
    return profiles.add(path.name, path.read_bytes())


@cache
def kernel_library() -> Library:
    """What all views of this kernel share: the runs, and the threads for work that takes long."""
    return Library()


def _kept(opened: Opened) -> Opened:
    if opened.store is None:
        raise ValueError(
            f"{opened.label} holds no program that can be shown: "
            + "; ".join(f"{item.message} [{item.code}]" for item in opened.findings[:5])
        )
    _OPEN[opened.digest] = opened
    _OPEN.move_to_end(opened.digest)
    while len(_OPEN) > KEPT:
        _OPEN.popitem(last=False)
    return opened


def program_of_run(run: RunRecord) -> Opened:
    """The open program that a run is of.

    Raises:
        LookupError: it is not open in this kernel.
    """
    digest = str(run.program.get("digest", ""))
    for opened in reversed(_OPEN.values()):
        if opened.store is not None and digest in (opened.digest, opened.store.program.digest):
            return opened
    raise LookupError(f"the program of this run ({digest[:12]}) is not open here: dtir.explore(program) first")


def program_of_report(report: DiagnosticSet) -> Opened:
    """The open program that a report speaks of, with the findings of the report.

    A report names tasks and values by their ids; the program opened last that has all of them is meant.

    Raises:
        LookupError: there is none.
    """
    subjects = [text.partition(":") for item in report for text in item.subject]
    named = {name for kind, _, name in subjects if kind in ("node", "task", "value")}
    for opened in reversed(_OPEN.values()):
        store = opened.store
        if store is not None and named <= (store.task_index.keys() | store.value_index.keys()):
            made = build_store(
                store.program, digest=store.digest, label=store.label, format=store.format, diagnostics=tuple(report)
            )
            return prepare(Opened(opened.label, opened.digest, opened.format, made, made.findings))
    raise LookupError("the program of this report is not open here: dtir.explore(program) first")
