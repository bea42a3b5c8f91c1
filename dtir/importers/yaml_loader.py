"""YAML authoring documents as an input."""

from __future__ import annotations

from dtir.importers.base import Imported, Source
from dtir.importers.yaml import ReadProgram, read_programs

FORMAT = "yaml"


def load_yaml(source: Source) -> Imported:
    """Read every program of a source: the first, with the others behind it."""
    programs = [_imported(source, found, index) for index, found in enumerate(read_programs(source.text or ""))]
    first, *others = programs
    label = source.label if not others else first.label
    return Imported(first.program, first.diagnostics, first.format, first.digest, label, tuple(others))


def _imported(source: Source, found: ReadProgram, index: int) -> Imported:
    name = found.name or str(index)
    return Imported(found.program, found.diagnostics, FORMAT, source.digest(), f"{source.label}#{name}")
