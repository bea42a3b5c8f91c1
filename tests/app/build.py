"""Stores for the app's tests: bundled real programs, and small ones built by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

from dtir_app.columns import build_store, open_imported
from dtir_app.gallery import Example, examples
from dtir_app.judging import judge
from dtir_app.store import Opened, Store

from dtir.importers import load_path
from dtir.importers.base import Imported
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.frozen import freeze


def example(name: str) -> Example:
    return next(item for item in examples() if item.name == name)


@cache
def opened_example(name: str) -> Opened:
    """A bundled program, read and judged once for all tests; a store is never changed."""
    return open_imported(load_path(example(name).path), judge)


def store_of_example(name: str) -> Store:
    store = opened_example(name).store
    assert store is not None
    return store


def store_of(program: DistributedTaskIR, *diagnostics: Diagnostic, label: str = "built.json") -> Store:
    return build_store(program, digest="ab" * 20, label=label, format="dtir", diagnostics=diagnostics)


def opened(program: DistributedTaskIR, *diagnostics: Diagnostic) -> Opened:
    return open_imported(Imported(program, DiagnosticSet(diagnostics), "dtir", "ab" * 20, "built.json"), lambda _: ())


HOSTILE = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=2>",
    "]]><svg onload=window.hit=3>",
    "javascript:window.hit=4",
    "{{7*7}}${7*7}<b>bold</b>\u202e",
)
"""Names that are markup; none may become it. What would run sets `window.hit`."""


def hostile_program() -> DistributedTaskIR:
    """A program whose every name and note is markup."""
    program = load_path(example("faults").path).program
    assert program is not None
    labels = itertools.cycle(HOSTILE)
    return replace(
        program,
        name=HOSTILE[0],
        tasks=tuple(
            replace(task, name=next(labels), attributes=freeze({**task.attributes, next(labels): next(labels)}))
            for task in program.tasks
        ),
        values=tuple(replace(value, name=next(labels)) for value in program.values),
    )


def hostile_import() -> Imported:
    """The same as an importer gives it, its file named alike."""
    return Imported(hostile_program(), DiagnosticSet(()), HOSTILE[2], "ab" * 20, f"{HOSTILE[0]}.json")
