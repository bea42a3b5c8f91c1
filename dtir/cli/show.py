"""``dtir show``: what is in a program."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dtir.cli.command import FAILED, FINDINGS, OK, Command, Console, add_files, add_format, worst
from dtir.schema.diagnostics import Diagnostic, Severity

MAX_MEMBERS = 1_000_000


def _configure(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_format(parser, "text", "json")
    parser.add_argument("--all", action="store_true", help="text: every collective, group and finding")
    parser.add_argument(
        "--max-members",
        type=int,
        default=MAX_MEMBERS,
        metavar="N",
        help=f"json: most ranks written in member lists (default: {MAX_MEMBERS:,})",
    )


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.analysis.summary import summarize
    from dtir.cli import render_json, render_text
    from dtir.cli.inputs import load_each

    codes: list[int] = []
    results: list[render_json.JSON] = []
    as_json = options.format == "json"
    for name, imported in load_each(options.files, console):
        if imported.program is None:
            codes.append(FAILED)
            results.append(render_json.failed(imported.diagnostics))
            _report_failure(name, tuple(imported.diagnostics), console)
            continue
        program = imported.program
        summary = summarize(program)
        found = (
            *imported.diagnostics,
            *(item for item in program.diagnostics() if item not in set(imported.diagnostics)),
        )
        codes.append(FINDINGS if any(item.severity is Severity.ERROR for item in found) else OK)
        if as_json:
            whole = _written_out([row.members for row in summary.collectives], options.max_members)
            notes = _omitted([row.members for row in summary.collectives], whole, options.max_members)
            results.append(
                render_json.shown(
                    summary,
                    digest=program.digest,
                    format=imported.format,
                    source_digest=imported.digest,
                    warnings=(*found, *notes),
                    written_out=whole,
                )
            )
            continue
        lines = render_text.shown(
            summary,
            label=imported.label,
            digest=program.digest,
            format=imported.format,
            source_digest=imported.digest,
            warnings=found,
            show_all=options.all,
            style=console.style,
        )
        console.out.write(("\n" if codes[:-1] else "") + "\n".join(lines) + "\n")
    if as_json:
        console.out.write(render_json.text(render_json.per_file(options.files, results)))
    return worst(codes)


def _report_failure(name: str, diagnostics: Sequence[Diagnostic], console: Console) -> None:
    from dtir.cli.failing import report

    report(name, diagnostics, console)


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
