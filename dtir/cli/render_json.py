"""The JSON that commands print; the keys are a contract that scripts rely on.

Text outside ASCII is escaped: a terminal shows JSON too, and names in it are untrusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtir.analysis.scalars import scalar_text
from dtir.analysis.summary import CollectiveRow, Summary
from dtir.ir.expr import Scalar
from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Diagnostic, Severity

JSON = dict[str, Any]


# Strings hold no line feed in JSON text, so that this never touches one.
_NUMBERS = re.compile(r"\[\n\s+(-?\d+(?:,\n\s+-?\d+)*)\n\s+\]")


def text(value: object) -> str:
    """A value as JSON text, ending with a line feed; a list of whole numbers (the ranks of a group) stands on one line."""
    spread = json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False)
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", spread) + "\n"


def per_file(names: Sequence[str], results: Sequence[JSON]) -> JSON:
    """The object of one file as it is; of several as ``{"files": [{"file": name, ...}, ...]}``."""
    if len(results) == 1:
        return results[0]
    return {"files": [{"file": name, **result} for name, result in zip(names, results, strict=True)]}


def diagnostic(item: Diagnostic) -> JSON:
    """One finding."""
    return {
        "code": item.code,
        "severity": item.severity.value,
        "message": item.message,
        "hint": item.hint,
        "path": list(item.path),
        "subject": list(item.subject),
        "related": [{"label": related.label, "path": list(related.path)} for related in item.related],
    }


def failed(diagnostics: Iterable[Diagnostic]) -> JSON:
    """What a command that could not run prints."""
    return {"diagnostics": [diagnostic(item) for item in diagnostics]}


def counts(diagnostics: Iterable[Diagnostic]) -> JSON:
    """Findings by severity."""
    found = [item.severity for item in diagnostics]
    return {severity.value: found.count(severity) for severity in Severity}


def verified(diagnostics: Sequence[Diagnostic]) -> JSON:
    """The result of ``verify``."""
    by_severity = counts(diagnostics)
    return {
        "ok": by_severity["error"] == 0,
        "counts": by_severity,
        "diagnostics": [diagnostic(item) for item in diagnostics],
    }


def scalar(value: Scalar) -> int | float | str:
    """A number as it is, an expression as text."""
    return value if isinstance(value, int | float) else scalar_text(value)


def collective(row: CollectiveRow, *, with_groups: bool = True) -> JSON:
    """One collective; ``groups`` is null when the lists are not written out."""
    return {
        "id": row.id,
        "kind": row.kind,
        "groups": [list(group) for group in row.groups] if with_groups and row.groups is not None else None,
        "group_count": row.group_count,
        "group_size": row.group_size,
        "message_bytes": scalar(row.message_bytes),
        "reduction": row.reduction,
        "dtype": row.dtype,
        "source": row.source,
        "source_name": row.source_name,
        "executions": row.executions,
        "axes": list(row.axes),
        "region": row.region,
    }


def shown(
    summary: Summary,
    *,
    digest: str,
    format: str,
    source_digest: str,
    warnings: Iterable[Diagnostic],
    written_out: Sequence[bool],
) -> JSON:
    """The result of ``show``.

    Args:
        summary: what the program holds.
        digest: the program's own digest.
        format: the format it was read from.
        source_digest: the digest of what was read.
        warnings: findings of reading it.
        written_out: for each collective whether its member lists are written out.
    """
    rows = zip(summary.collectives, written_out, strict=True)
    return {
        "name": summary.name,
        "digest": digest,
        "format": format,
        "source": {"format": format, "digest": source_digest},
        "mesh": {
            "axes": [{"name": axis.name, "size": axis.size} for axis in summary.mesh.axes],
            "ranks": summary.mesh.size,
        },
        "tasks": {"total": summary.task_total, "by_kind": dict(summary.tasks_by_kind)},
        "collectives": [collective(row, with_groups=whole) for row, whole in rows],
        "values": {"total": summary.value_total},
        "warnings": [diagnostic(item) for item in warnings],
    }


def explained(entry: CodeEntry) -> Mapping[str, str]:
    """The result of ``explain``."""
    return {"code": entry.code, "why": entry.why, "bad": entry.bad, "good": entry.good, "hint": entry.hint}
