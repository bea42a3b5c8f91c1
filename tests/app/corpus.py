"""Stores of the corpus of faulty programs, read and judged once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dtir_app.columns import open_imported
from dtir_app.judging import judge
from dtir_app.store import Store

from dtir.importers.base import Imported
from dtir.importers.yaml import read_programs
from dtir.schema.diagnostics import DiagnosticSet


@cache
def corpus_stores(shared_data: Path, *, fixed: bool = False) -> dict[str, Store]:
    """Stores by the names of the entries; the corrected programs when `fixed`."""
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    found: dict[str, Store] = {}
    for read in read_programs(text, fixed=fixed):
        assert read.program is not None
        imported = Imported(
            read.program, DiagnosticSet(tuple(read.diagnostics)), "yaml", "cd" * 20, f"{read.name}.yaml"
        )
        store = open_imported(imported, judge).store
        assert store is not None
        found[read.name] = store
    return found


def corpus_store(shared_data: Path, prefix: str, *, fixed: bool = False) -> Store:
    """The one entry whose name begins so."""
    (found,) = [store for name, store in corpus_stores(shared_data, fixed=fixed).items() if name.startswith(prefix)]
    return found
