"""Importer of HLO text: `import_hlo` gives a program, `analyse_text` the module as read."""

from __future__ import annotations

from dtir.importers.hlo.frontend import analyse_text
from dtir.importers.hlo.importer import HloImport, import_hlo

__all__ = ["HloImport", "analyse_text", "import_hlo"]
