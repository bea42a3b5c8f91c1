"""Stores for the app's tests: bundled real programs, and small ones built by hand."""

from __future__ import annotations

from functools import cache

from dtir_app.columns import build_store, open_imported
from dtir_app.gallery import Example, examples
from dtir_app.judging import judge
from dtir_app.store import Opened, Store

from dtir.importers import load_path
from dtir.importers.base import Imported
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet


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
