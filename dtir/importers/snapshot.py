"""Snapshots as an input: native ones, and those of the upstream project."""

from __future__ import annotations

import re

from dtir.importers.base import Imported, Source, imported
from dtir.importers.detect import recognise
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Err, Ok

# A key of the envelope: in the payload the same letters could only stand inside a string, behind a backslash.
_STATED_DIGEST = re.compile(r'(?<!\\)"(?:content_)?digest"\s*:\s*"([0-9a-f]{40})"')


def load_snapshot(source: Source) -> Imported:
    """Read a snapshot; its digest is the one that it states and that was checked against its content."""
    text = source.text or ""
    known = recognise(source.data)
    format_name = known.name if known else "dtir"
    try:
        result = DistributedTaskIR.from_json(text)
    except RecursionError:
        # The reader of the snapshot bounds its own depth; this is the net below it, for a file must never end in a traceback.
        deep = Diagnostic(
            "input.too_deep", "the snapshot nests deeper than it can be read", hint="check what wrote the file"
        )
        return imported(source, format_name, None, DiagnosticSet.of(deep))
    match result:
        case Ok(program, diagnostics):
            stated = _STATED_DIGEST.search(text)
            digest = stated[1] if stated else source.digest()
            return Imported(program, diagnostics, format_name, digest, source.label)
        case Err(diagnostics):
            return imported(source, format_name, None, diagnostics)
