"""MLIR text (StableHLO, Shardy, MPMD) as an input."""

from __future__ import annotations

from dtir.importers.base import Imported, Source, refused
from dtir.importers.stablehlo.importer import import_mlir
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet

FORMAT = "stablehlo"


def load_stablehlo(source: Source) -> Imported:
    """Import every program of a source: the first is the result, the others stand in `Imported.others`.

    Programs are labelled ``FILE#FUNCTION``; functions of the same name in several parts of the file get the line of their part:
    ``FILE#main:31``.
    """
    found = import_mlir(source.text or "", digest=source.digest())
    digest = source.digest()
    names = [one.name for one in found.programs]
    entries: list[Imported] = []
    notes: list[Diagnostic] = []
    for part in found.parts:
        for one in part.programs:
            if one.program is None and one.diagnostics.ok and len(names) > 1:
                notes += one.diagnostics  # a part without a function: there is nothing to show of it
                continue
            name = one.name if names.count(one.name) == 1 and one.name else f"{one.name or 'part'}:{part.line}"
            label = source.label if len(names) == 1 else f"{source.label}#{name}"
            entries.append(Imported(one.program, one.diagnostics, FORMAT, digest, label))
    if not entries:
        return refused(source.label, *notes, format=FORMAT, digest=digest)
    first, *others = entries
    said = DiagnosticSet((*first.diagnostics, *notes))
    return Imported(first.program, said, FORMAT, digest, first.label, tuple(others))
