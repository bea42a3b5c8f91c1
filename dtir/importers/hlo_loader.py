"""HLO text as an input."""

from __future__ import annotations

from dtir.importers.base import Imported, Source, imported
from dtir.importers.hlo.importer import import_hlo

FORMAT = "hlo"


def load_hlo(source: Source) -> Imported:
    """Import the module of a source; the program has the module's own name."""
    found = import_hlo(source.text or "", digest=source.digest())
    return imported(source, FORMAT, found.program, found.diagnostics)
