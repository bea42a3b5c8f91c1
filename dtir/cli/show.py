"""``dtir show``: what is in a program."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtir.cli.command import FAILED, FINDINGS, OK, Command, Console, add_files, add_format, has_errors, worst
from dtir.cli.systems import add_system
from dtir.schema.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.analysis.summary import Summary
    from dtir.cli.render_json import JSON
    from dtir.importers import Imported
    from dtir.ir.program import DistributedTaskIR

MAX_MEMBERS = 1_000_000


def _configure(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_format(parser, "text", "json")
    add_system(parser)
    parser.add_argument("--all", action="store_true", help="text: every collective, group and finding")
    parser.add_argument(
        "--why",
        metavar="TASK",
        help="why this communication task is there: its name or id, or all; in place of the rest",
    )
    parser.add_argument(
        "--max-members",
        type=int,
        default=MAX_MEMBERS,
        metavar="N",
        help=f"json: most ranks written in member lists (default: {MAX_MEMBERS:,})",
    )


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.analysis.summary import summarize
    from dtir.cli import render_json
    from dtir.cli.failing import report
    from dtir.cli.inputs import load_each, merged

    codes: list[int] = []
    names: list[str] = []
    results: list[JSON] = []
    for name, imported in load_each(options.files, console, options.system):
        names.append(name)
        program = imported.program
        declared = _declared(name, imported, options, console)
        if declared is not None:
            results.append(declared)
            codes.append(OK)
            continue
        if program is None:
            codes.append(FAILED)
            results.append(render_json.failed(imported.diagnostics))
            report(name, tuple(imported.diagnostics), console)
            continue
        summary = summarize(program)
        found = merged(imported.diagnostics, program.diagnostics())
        if options.why and not has_errors(found):
            results.append(_reasons(program, found, options, console))
        elif options.format == "json":
            results.append(_as_json(program, summary, imported, found, options.max_members))
        else:
            lines = _as_text(program, summary, imported, found, options, console)
            console.out.write(("\n" if OK in codes or FINDINGS in codes else "") + "\n".join(lines) + "\n")
        codes.append(FINDINGS if has_errors(found) else OK)
    if options.format == "json":
        console.out.write(render_json.text(render_json.per_file(names, results)))
    return worst(codes)


def _declared(name: str, imported: Imported, options: argparse.Namespace, console: Console) -> JSON | None:
    """A declaration without a system is no program, and has something to show all the same."""
    if imported.format != "mlipspec" or [item.code for item in imported.diagnostics] != ["spec.no_system"]:
        return None
    from dtir.cli.systems import declared, declared_json, declared_text

    spec = declared(name)
    if options.format == "text":
        console.out.write("\n".join((imported.label, *declared_text(spec, console.style))) + "\n")
    return {"name": imported.label, "digest": imported.digest, "format": imported.format, **declared_json(spec)}


def _reasons(
    program: DistributedTaskIR, found: Sequence[Diagnostic], options: argparse.Namespace, console: Console
) -> JSON:
    """What ``--why`` asks for; written at once as text."""
    from dtir.cli import render_json
    from dtir.cli.reasons import reason_json, reason_lines, reasons

    asked = reasons(program, options.why)
    if options.format != "json":
        blocks = ["\n".join(reason_lines(task, reason, console.style)) for task, reason in asked]
        console.out.write(("\n\n".join(blocks) or f"{program.name} does not communicate") + "\n")
    return {
        "name": program.name,
        "why": [reason_json(task, reason) for task, reason in asked],
        "warnings": [render_json.diagnostic(item) for item in found],
    }


def _as_text(
    program: DistributedTaskIR,
    summary: Summary,
    imported: Imported,
    found: Sequence[Diagnostic],
    options: argparse.Namespace,
    console: Console,
) -> list[str]:
    from dtir.cli import render_text

    return render_text.shown(
        summary,
        label=imported.label,
        digest=program.digest,
        format=imported.format,
        source_digest=imported.digest,
        warnings=found,
        show_all=options.all,
        style=console.style,
        names=render_text.names_of(program) if found else render_text.NO_NAMES,
    )


def _as_json(
    program: DistributedTaskIR, summary: Summary, imported: Imported, found: Sequence[Diagnostic], max_members: int
) -> JSON:
    from dtir.cli import render_json

    members = [row.members for row in summary.collectives]
    whole = _written_out(members, max_members)
    result = render_json.shown(
        summary,
        digest=program.digest,
        format=imported.format,
        source_digest=imported.digest,
        warnings=(*found, *_omitted(members, whole, max_members)),
        written_out=whole,
    )
    # What breaks a rule stands also under the key that every command uses for it.
    return {**result, **render_json.failed(found)} if has_errors(found) else result


def _written_out(members: Sequence[int], limit: int) -> list[bool]:
    """Which member lists fit into the limit, taken in order."""
    whole: list[bool] = []
    left = limit
    for number in members:
        whole.append(number <= left)
        if number <= left:
            left -= number
    return whole


def _omitted(members: Sequence[int], whole: Sequence[bool], limit: int) -> list[Diagnostic]:
    left_out = [number for number, kept in zip(members, whole, strict=True) if not kept]
    if not left_out:
        return []
    return [
        Diagnostic(
            "show.groups_omitted",
            f"the member lists of {len(left_out)} collectives name {sum(left_out)} ranks and are not written out "
            f"(limit {limit})",
            ("collectives",),
            Severity.INFO,
            "raise --max-members",
        )
    ]


COMMAND = Command("show", "what is in a program: mesh, tasks, values, collectives", _configure, _run)
