"""``dtir check``: two forms of one program executed and compared; of a sequence of passes, the first guilty one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtir.cli.command import FAILED, FINDINGS, OK, Command, Console, Failure, add_format, failure

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.execute.archive import Archive
    from dtir.schema.diagnostics import Diagnostic

MOST_FORMS = 1_000
"""Dumps of one check."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="dumps of one program, the reference first and then in the order of the passes; a folder stands for its files by name",
    )
    parser.add_argument("--inputs", metavar="X.npz", help="undivided inputs in0, in1, ...; else they are generated")
    parser.add_argument("--seed", type=int, default=0, help="of generated inputs (default: 0)")
    add_format(parser, "text", "json")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.check import Form, check_programs
    from dtir.check.programs import Verdict
    from dtir.cli import render_check, render_json
    from dtir.cli.inputs import load_each
    from dtir.schema.diagnostics import DiagnosticSet

    names = _files(options.files)
    if options.seed < 0:
        raise failure("cli.usage", f"--seed {options.seed} is negative", hint="give 0 or more")
    if len(names) < 2:
        raise failure("cli.usage", f"{len(names)} program given, a check takes two or more", hint="dtir check A B")
    archive = _archive(options.inputs)
    short = {os.path.basename(name) for name in names}
    labels = {name: os.path.basename(name) for name in names} if len(short) == len(names) else {}
    problems: list[Diagnostic] = []
    forms: list[Form] = []
    for name, imported in load_each(names, console):
        if imported.program is None or not imported.diagnostics.ok:
            problems += imported.diagnostics.errors or tuple(imported.diagnostics)
        else:
            forms.append(Form(labels.get(name, name), imported.program))
    if problems:
        raise Failure(DiagnosticSet(tuple(problems)))
    if len(forms) > len(names):
        raise failure("cli.usage", "a file holds several programs", hint="give each form a file of its own")
    checked = check_programs(forms, inputs=archive, seed=options.seed)
    if options.format == "json":
        console.out.write(
            render_json.text(render_check.as_json(checked, {label: name for name, label in labels.items()}))
        )
    else:
        for line in render_check.as_text(checked, style=console.style):
            console.out.write(line + "\n")
    return {Verdict.EQUAL: OK, Verdict.DIFFERENT: FINDINGS, Verdict.NOT_COMPARABLE: FAILED}[checked.verdict]


def _files(given: Sequence[str]) -> list[str]:
    """Files as they stand; of a folder, its files by name."""
    found: list[str] = []
    for name in given:
        if os.path.isdir(name):
            inside = sorted(
                entry.path for entry in os.scandir(name) if entry.is_file() and not entry.name.startswith(".")
            )
            if not inside:
                raise failure("cli.usage", f"{name} is a folder without files", hint="name the folder of the dumps")
            found += inside
        else:
            found.append(name)
        if len(found) > MOST_FORMS:
            raise failure("cli.usage", f"more than {MOST_FORMS} dumps", hint="name those around the pass in question")
    return found


def _archive(name: str | None) -> Archive | None:
    if name is None:
        return None
    from dtir.execute.archive import Archive, ArchiveError

    try:
        return Archive.open(name)
    except ArchiveError as error:
        raise failure("run.archive", str(error), hint="give --inputs an .npz that numpy.savez wrote") from None


COMMAND = Command(
    "check", "one program in several forms: do they compute the same, and where do they part", _configure, _run
)
