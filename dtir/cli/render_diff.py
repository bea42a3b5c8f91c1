"""A difference of two programs as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from dtir.cli.terminal import PLAIN, Style, printable, size_text
from dtir.diff import Change, Diff, Present

SHOWN = 40
"""Lines of one section as text; the rest is counted."""
WIDTH = 60
"""Characters of a before or after as text; the rest is marked."""


def as_json(diff: Diff) -> dict[str, Any]:
    """The contract's keys first: ``added, removed, changed, bytes_delta``."""
    return {
        "added": [_present(item) for item in diff.added],
        "removed": [_present(item) for item in diff.removed],
        "changed": [_change(item) for item in diff.changed],
        "bytes_delta": diff.bytes_delta,
        "equal": diff.equal,
        "bytes": {
            "before": diff.bytes_before,
            "after": diff.bytes_after,
            "by_kind": {kind: {"before": a, "after": b} for kind, (a, b) in diff.bytes_by_kind.items()},
        },
        "matched": {how.value: number for how, number in diff.matched.items()},
    }


def _present(item: Present) -> dict[str, Any]:
    return {
        "what": item.what,
        "id": item.id,
        "name": item.name,
        "kind": item.kind,
        "operation": item.operation,
        "source": item.source,
        "message_bytes": item.message_bytes,
        "region": item.region,
    }


def _change(item: Change) -> dict[str, Any]:
    return {
        "what": item.what,
        "id": item.id,
        "other_id": item.other_id,
        "name": item.name,
        "other_name": item.other_name,
        "kind": item.kind,
        "field": item.field,
        "before": item.before,
        "after": item.after,
        "match": item.match.value,
        "region": item.region,
    }


def as_text(diff: Diff, names: tuple[str, str], *, show_all: bool = False, style: Style = PLAIN) -> list[str]:
    """Lines for a person: what is gone, what is new, what changed, and what that means in bytes."""
    limit = None if show_all else SHOWN
    if diff.equal:
        matched = sum(diff.matched.values())
        return [style.good(f"equal: {matched} tasks matched, nothing differs")]
    lines: list[str] = []
    if diff.removed:
        lines.append(style.bold(f"only in {printable(names[0])}: {len(diff.removed)}"))
        lines += _limited([f"  - {_present_text(item)}" for item in diff.removed], limit)
    if diff.added:
        lines.append(style.bold(f"only in {printable(names[1])}: {len(diff.added)}"))
        lines += _limited([f"  + {_present_text(item)}" for item in diff.added], limit)
    if diff.changed:
        lines.append(style.bold(f"changed: {len(diff.changed)}"))
        lines += _limited(list(_change_lines(diff.changed)), limit)
    lines.append(_bytes_line(diff))
    unsure = {how.value: number for how, number in diff.matched.items() if how.value in ("structure", "order")}
    if unsure:
        told = ", ".join(f"{number} by {how}" for how, number in sorted(unsure.items()))
        lines.append(style.dim(f"tasks that were matched without a common name or origin: {told}"))
    return lines


def _present_text(item: Present) -> str:
    parts = [item.what, printable(item.name)]
    if item.kind:
        parts.append(item.kind)
    if item.operation:
        parts.append(printable(item.operation))
    if item.message_bytes is not None:
        parts.append(size_text(item.message_bytes))
    if item.region:
        parts.append(f"in {printable(item.region)}")
    if item.source:
        parts.append(f"({printable(item.source)})")
    return "  ".join(parts)


def _change_lines(changes: Iterable[Change]) -> Iterable[str]:
    for (what, _, _), several in groupby(changes, key=lambda item: (item.what, item.id, item.other_id)):
        found = list(several)
        first = found[0]
        other = f" -> {printable(first.other_name)}" if first.other_name != first.name else ""
        kind = f"  {first.kind}" if what == "task" else ""
        yield f"  {what} {printable(first.name)}{other}{kind}"
        for item in found:
            yield f"      {item.field}: {_cut(item.before)} -> {_cut(item.after)}"


def _cut(text: str) -> str:
    shown = printable(text) or "(none)"
    return shown if len(shown) <= WIDTH else f"{shown[:WIDTH]}... ({len(shown)} characters)"


def _limited(lines: list[str], limit: int | None) -> list[str]:
    if limit is None or len(lines) <= limit:
        return lines
    return [*lines[:limit], f"  ... {len(lines) - limit} more lines; --all shows them"]


def _bytes_line(diff: Diff) -> str:
    if diff.bytes_delta is None:
        return "communication: not a number on both sides (symbolic sizes, or runs that the data decide)"
    by_kind = [f"{kind} {b - a:+,}" for kind, (a, b) in diff.bytes_by_kind.items() if a != b]
    told = f" ({', '.join(by_kind)})" if by_kind else ""
    return f"communication: {diff.bytes_before:,} B -> {diff.bytes_after:,} B, {diff.bytes_delta:+,} B{told}"
