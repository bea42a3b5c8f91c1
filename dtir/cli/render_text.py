"""The text that commands print for an engineer at a terminal. Nothing is left out without saying how much and how to see it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from dtir.analysis.groups import AxisFibres, Group, Groups
from dtir.analysis.summary import CollectiveRow, Summary
from dtir.cli.places import place_text
from dtir.cli.states_text import NO_STATES, States
from dtir.cli.terminal import PLAIN, Style, count, printable, size_text, table
from dtir.ir.program import DistributedTaskIR
from dtir.ir.ranks import RankRange
from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Diagnostic, Severity

ROWS_SHOWN = 20
FINDINGS_SHOWN = 100
GROUPS_SHOWN = 2
MEMBERS_SHOWN = 8
NO_NAMES: Mapping[str, str] = {}


# -------------------------------------------------------------------------------------------------------- findings


Names: TypeAlias = Mapping[str, str]
"""Display ids of tasks and values to what their source calls them."""


def names_of(program: DistributedTaskIR) -> Names:
    """The names of a program's tasks and values, by display id."""
    named = (*program.all_tasks(), *program.all_values())
    return {str(one.id): one.name for one in named if one.name}


def finding(item: Diagnostic, style: Style = PLAIN, names: Names = NO_NAMES, states: States = NO_STATES) -> list[str]:
    """One finding: the line that counts first, then what it concerns (by name where it has one), the states, and what to do."""
    where = place_text(item.path)
    head = f"{style.severity(item.severity, item.severity.value)} [{item.code}] {printable(item.message)}"
    lines = [head]
    if where:
        lines.append(f"    at {printable(where)}")
    if item.subject:
        concerned = ", ".join(names.get(one, one) for one in item.subject)
        lines.append(f"    concerns {printable(concerned)}")
    lines.extend(
        f"    {printable(related.label)}: {printable(place_text(related.path) or '<root>')}" for related in item.related
    )
    lines.extend("    " + line for line in states.lines(item))
    if item.hint:
        lines.append(f"    hint: {printable(item.hint)}")
    return lines


def by_severity(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Worst first; findings of one severity stay in their order."""
    return sorted(diagnostics, key=lambda item: list(Severity).index(item.severity))


def finding_counts(diagnostics: Sequence[Diagnostic], style: Style = PLAIN) -> str:
    """``2 errors, 1 warning``; ``no findings`` when there is none."""
    parts: list[str] = []
    for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")):
        number = sum(item.severity is severity for item in diagnostics)
        if number:
            parts.append(style.severity(severity, count(number, noun)))
    return ", ".join(parts) or "no findings"


def findings(
    diagnostics: Sequence[Diagnostic],
    *,
    limit: int | None,
    style: Style = PLAIN,
    names: Names = NO_NAMES,
    states: States = NO_STATES,
) -> list[str]:
    """Findings, worst first, and how many more there are."""
    ordered = by_severity(diagnostics)
    lines: list[str] = []
    for item in ordered[:limit]:
        lines.extend(finding(item, style, names, states))
    if limit is not None and len(ordered) > limit:
        lines.append(style.dim(f"... {count(len(ordered) - limit, 'more finding')}; --all shows them"))
    return lines


# ------------------------------------------------------------------------------------------------------------ show


def mesh_text(summary: Summary) -> str:
    """``8 ranks = dp 2 × tp 4``."""
    axes = " × ".join(f"{printable(axis.name)} {axis.size:,}" for axis in summary.mesh.axes)
    return f"{count(summary.mesh.size, 'rank')} = {axes}"


def group_text(group: Group, members: int | None = MEMBERS_SHOWN) -> str:
    """A member list, runs written short: ``0-3``, ``0-6:2`` (every second), ``0,5,1``."""
    size = len(group)
    if isinstance(group, RankRange) or (size > 2 and group == tuple(range(group[0], group[-1] + 1))):
        step = group.step if isinstance(group, RankRange) else 1
        if size > 2:
            return f"{group[0]}-{group[-1]}" + (f":{step}" if step > 1 else "")
    if members is not None and size > members:
        return ",".join(map(str, group[:members])) + f",... +{size - members}"
    return ",".join(map(str, group))


def groups_text(row: CollectiveRow, *, all_groups: bool) -> tuple[str, bool]:
    """The groups of a collective in a cell, and whether something was left out."""
    groups: Groups | None = row.groups
    if groups is None:
        return "?", False
    arrow = row.kind == "collective_permute"
    limit = None if all_groups else GROUPS_SHOWN
    shown = groups[: len(groups) if limit is None else limit]
    texts = [
        "→".join(map(str, group)) if arrow else f"{{{group_text(group, None if all_groups else MEMBERS_SHOWN)}}}"
        for group in shown
    ]
    more = len(groups) - len(shown)
    cut = more > 0 or any("..." in text for text in texts)
    return " ".join([*texts, *([f"+{more:,}"] if more else [])]), cut


def message_text(row: CollectiveRow) -> str:
    """Bytes with a unit; a symbolic size as its expression."""
    size = row.message_bytes
    return size_text(size) if isinstance(size, int | float) and math.isfinite(size) else row.message_text


def _fibre_note(row: CollectiveRow) -> str:
    return ",".join(row.axes) if isinstance(row.groups, AxisFibres) or row.axes else ""


def collectives(rows: Sequence[CollectiveRow], *, show_all: bool, style: Style = PLAIN) -> list[str]:
    """The table of collectives, and what it leaves out."""
    shown = rows if show_all else rows[:ROWS_SHOWN]
    cells: list[list[str]] = []
    cut = False
    for row in shown:
        groups, left_out = groups_text(row, all_groups=show_all)
        cut = cut or left_out
        cells.append(
            [
                row.kind,
                row.reduction or "",
                row.dtype or "",
                message_text(row),
                "?" if row.executions is None else f"{row.executions:,}",
                "" if row.group_count is None else f"{row.group_count:,}",
                "" if row.group_size is None else f"{row.group_size:,}",
                _fibre_note(row),
                groups,
                row.source_name or row.id,
                row.region or "",
            ]
        )
    header = ["kind", "reduction", "dtype", "message", "runs", "groups", "size", "axes", "members", "name", "in region"]
    lines = table(header, cells, right=(3, 4, 5, 6), style=style)
    if len(rows) > len(shown):
        lines.append(style.dim(f"... {count(len(rows) - len(shown), 'more collective')}; --all shows them"))
    elif cut:
        lines.append(style.dim("member lists are shortened; --all shows them whole"))
    if any(row.executions is None for row in shown):
        lines.append(style.dim("runs ?: the data decide how often"))
    return lines


def shown(
    summary: Summary,
    *,
    label: str,
    digest: str,
    format: str,
    source_digest: str,
    warnings: Sequence[Diagnostic],
    show_all: bool = False,
    style: Style = PLAIN,
    names: Names = NO_NAMES,
) -> list[str]:
    """The text of ``show``."""
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in summary.tasks_by_kind.items())
    facts = [
        ("source", f"{printable(label)} ({format}, {source_digest})"),
        ("digest", digest),
        ("mesh", mesh_text(summary)),
        ("tasks", f"{summary.task_total:,}" + (f" ({kinds})" if kinds else "")),
        (
            "values",
            f"{summary.value_total:,} ({count(summary.input_total, 'input')}, {count(summary.output_total, 'output')})",
        ),
    ]
    if summary.region_total:
        facts.append(("regions", f"{summary.region_total:,}"))
    lines = [style.bold(printable(summary.name) or "(no name)")]
    lines.extend(f"  {style.dim(name.ljust(8))} {text}" for name, text in facts)
    if warnings:
        lines += ["", style.bold("findings") + f"  {finding_counts(warnings, style)}"]
        lines += [
            "  " + line for line in findings(warnings, limit=None if show_all else ROWS_SHOWN, style=style, names=names)
        ]
    lines += ["", style.bold("collectives") + f"  {len(summary.collectives):,}"]
    if summary.collectives:
        lines += ["  " + line for line in collectives(summary.collectives, show_all=show_all, style=style)]
    return lines


# ---------------------------------------------------------------------------------------------------------- verify


def verified(
    label: str,
    diagnostics: Sequence[Diagnostic],
    *,
    judges: Sequence[str],
    show_all: bool,
    style: Style = PLAIN,
    names: Names = NO_NAMES,
    states: States = NO_STATES,
) -> list[str]:
    """The text of ``verify``: the verdict, then the findings, each with the states before and after its task."""
    wrong = any(item.severity is Severity.ERROR for item in diagnostics)
    verdict = style.severity(Severity.ERROR, "not valid") if wrong else style.good("ok")
    by = f"judged by {', '.join(judges)}" if judges else "not judged"
    lines = [f"{style.bold(printable(label))}: {verdict} ({finding_counts(diagnostics, style)}; {by})"]
    lines += [
        "  " + line
        for line in findings(
            diagnostics, limit=None if show_all else FINDINGS_SHOWN, style=style, names=names, states=states
        )
    ]
    return lines


# --------------------------------------------------------------------------------------------------------- explain


def explained(entry: CodeEntry, style: Style = PLAIN, columns: int = 88) -> list[str]:
    """The text of ``explain``."""
    lines = [f"{style.bold(entry.code)} ({style.severity(entry.severity, entry.severity.value)})", ""]
    lines += textwrap.wrap(entry.why, columns)
    for title, example in (("bad", entry.bad), ("good", entry.good)):
        lines += ["", style.dim(title)]
        lines += [f"    {line}" for line in example.splitlines()]
    return [*lines, "", f"{style.dim('hint')}  {entry.hint}"]
