"""``dtir explain``: what a diagnostic means."""

from __future__ import annotations

import argparse

from dtir.cli.command import OK, Command, Console, add_format, failure


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", metavar="CODE", help="a diagnostic code, for example rank.unknown")
    parser.add_argument("--list", action="store_true", help="every code with its hint")
    add_format(parser, "text", "json")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import render_json, render_text
    from dtir.cli.terminal import table
    from dtir.explain import catalogue, explain, similar_codes

    if options.list:
        entries = list(catalogue().values())
        if options.format == "json":
            console.out.write(render_json.text({"codes": [render_json.explained(entry) for entry in entries]}))
        else:
            rows = [[entry.code, entry.severity.value, entry.hint] for entry in entries]
            console.out.write("\n".join(table(["code", "severity", "what to do"], rows, style=console.style)) + "\n")
        return OK
    if options.code is None:
        raise failure("cli.usage", "no CODE was given", hint="dtir explain CODE, or dtir explain --list")
    code = options.code.strip().strip("[]")
    entry = explain(code)
    if entry is None:
        close = similar_codes(code)
        hint = f"did you mean {' or '.join(close)}?" if close else "dtir explain --list names every code"
        raise failure("cli.unknown_code", f"there is no diagnostic code {code!r}", hint=hint)
    if options.format == "json":
        console.out.write(render_json.text(render_json.explained(entry)))
    else:
        console.out.write("\n".join(render_text.explained(entry, console.style)) + "\n")
    return OK


COMMAND = Command("explain", "what a diagnostic code means, with a bad and a good example", _configure, _run)
