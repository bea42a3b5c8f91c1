"""``dtir diff``: what two programs do differently."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dtir.cli.command import FAILED, FINDINGS, OK, Command, Console, add_format
from dtir.schema.diagnostics import Diagnostic

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.importers import Imported
    from dtir.ir.program import DistributedTaskIR


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="a program, recognised by content; - is standard input")
    parser.add_argument("after", metavar="B", help="the program to compare it with")
    parser.add_argument("--program", metavar="NAME", help="which program, of files that hold several")
    parser.add_argument("--all", action="store_true", help="text: every line")
    add_format(parser, "text", "json")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import render_diff, render_json
    from dtir.cli.command import failure
    from dtir.cli.failing import report
    from dtir.cli.inputs import load_one
    from dtir.diff import diff_programs

    if options.before == options.after == "-":
        raise failure("cli.usage", "standard input (-) is named twice; it can be read once", hint="name it once")
    loaded = {name: load_one(name, options.program, console) for name in dict.fromkeys((options.before, options.after))}
    programs: list[DistributedTaskIR] = []
    problems: list[Diagnostic] = []
    for name in (options.before, options.after):
        imported = loaded[name]
        found = _problems(imported)
        if imported.program is None or found:
            # What was not understood in full cannot be said to be equal, nor how it differs.
            problems += [item for item in found if item not in problems]
            report(name, found, console)
        else:
            programs.append(imported.program)
    if problems or len(programs) < 2:
        if options.format == "json":
            console.out.write(render_json.text(render_json.failed(problems)))
        return FAILED
    found_diff = diff_programs(*programs)
    if options.format == "json":
        sides = [
            {"file": name, "name": program.name, "digest": program.digest}
            for name, program in zip((options.before, options.after), programs, strict=True)
        ]
        result = render_diff.as_json(found_diff)
        console.out.write(render_json.text({**result, "a": sides[0], "b": sides[1]}))
    else:
        names = (options.before, options.after)
        for line in render_diff.as_text(found_diff, names, show_all=options.all, style=console.style):
            console.out.write(line + "\n")
    return OK if found_diff.equal else FINDINGS


def _problems(imported: Imported) -> tuple[Diagnostic, ...]:
    if imported.program is None:
        return tuple(imported.diagnostics)
    return tuple(imported.diagnostics.errors)


COMMAND = Command("diff", "what two programs do differently; exit 1 when they differ", _configure, _run)
