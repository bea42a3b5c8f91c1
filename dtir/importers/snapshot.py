"""Snapshots as an input: native ones, and those of the upstream project."""

from __future__ import annotations

import re

from dtir.importers.base import Imported, Source, imported
from dtir.importers.detect import recognise
from dtir.ir.program import DistributedTaskIR
from dtir.ir.snapshot import decode_snapshot
from dtir.schema.result import Err, Ok

# A key of the envelope. In the payload the same letters could only stand inside a string, behind a backslash: the
# upstream form has no free keys.
_UPSTREAM_DIGEST = re.compile(r'(?<!\\)"content_digest"\s*:\s*"([0-9a-f]{40})"')


def load_snapshot(source: Source) -> Imported:
    """Read a snapshot and judge its structure; a program that breaks a rule comes with its findings.

    The digest is the one that the snapshot states, which was checked against its content.
    """
    text = source.text or ""
    known = recognise(source.data)
    format_name = known.name if known else "dtir"
    match decode_snapshot(text):
        case Ok(program, diagnostics):
            found = diagnostics.extend(program.diagnostics())
            digest = _stated_digest(format_name, text, program)
            return Imported(program, found, format_name, digest, source.label)
        case Err(diagnostics):
            return imported(source, format_name, None, diagnostics)


def _stated_digest(format_name: str, text: str, program: DistributedTaskIR) -> str:
    stated = _UPSTREAM_DIGEST.search(text) if format_name == "upstream" else None
    return stated[1] if stated else program.digest
