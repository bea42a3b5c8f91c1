"""``dtir convert``: import a program and save it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtir.cli.command import FINDINGS, OK, Command, Console, Failure, add_format, failure, has_errors
from dtir.cli.systems import add_system
from dtir.schema.diagnostics import Diagnostic, IRVerificationError

if TYPE_CHECKING:  # `dtir --help` need not load the IR
    from dtir.importers import Imported
    from dtir.ir.program import DistributedTaskIR


def _native(program: DistributedTaskIR) -> tuple[str, str]:
    return program.to_json(), program.digest


def _upstream(program: DistributedTaskIR) -> tuple[str, str]:
    return program.to_upstream_json(), program.upstream_digest


def _networkx(program: DistributedTaskIR) -> tuple[str, str]:
    from dtir.analysis.node_link import node_link

    return json.dumps(node_link(program), ensure_ascii=False, allow_nan=False), program.digest


def _yaml(program: DistributedTaskIR) -> tuple[str, str]:
    from dtir.importers.yaml import to_yaml

    return to_yaml(program), program.digest


WRITERS: dict[str, Callable[[DistributedTaskIR], tuple[str, str]]] = {
    "native": _native,
    "upstream": _upstream,
    "yaml": _yaml,
    "networkx-json": _networkx,
}
"""Format name to a function that gives the text and the digest of what it says."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="a program, recognised by content; - is standard input; .gz is read through; traces of several ranks are one",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="where to write; - is standard output; a name that ends in .gz is packed",
    )
    parser.add_argument("--to", choices=tuple(WRITERS), default="native", help="format to write (default: native)")
    parser.add_argument(
        "--times",
        metavar="RUN.json",
        help="of traces: write their times as a run record (they are no part of a program)",
    )
    parser.add_argument("--program", metavar="NAME", help="which program, of a file that holds several")
    add_format(parser, "text", "json")
    add_system(parser)


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import render_json, render_text
    from dtir.cli.inputs import load_one
    from dtir.cli.writing import write

    to_stdout = options.output == "-"
    if to_stdout and options.format == "json":
        raise failure(
            "cli.usage",
            "the converted program and the report cannot both go to standard output",
            hint="give -o a file name",
        )
    imported = load_one(options.file, options.program, console, options.system)
    if imported.program is None:
        raise Failure(imported.diagnostics)
    found: list[Diagnostic] = list(imported.diagnostics)
    written: str | None = None
    digest = ""
    # A program that was not understood in full is not written: what is missing could not be seen in the result.
    if imported.diagnostics.ok:
        try:
            content, digest = WRITERS[options.to](imported.program)
            write(options.output, content, console)
            written = options.output
        except IRVerificationError as error:
            found += error.diagnostics
    report: dict[str, Any] = {"written": written, "digest": digest if written else None}
    if options.times is not None:
        report["times"] = _write_times(imported, options.times, console) if written else None
    if found:
        report["diagnostics"] = [render_json.diagnostic(item) for item in found]
    if options.format == "json":
        console.out.write(render_json.text(report))
    else:
        stream = console.err if to_stdout else console.out
        style = console.error_style if to_stdout else console.style
        if written:
            stream.write(f"written {options.output} ({options.to}, {digest})\n")
            if options.times is not None:
                stream.write(f"written {options.times} (run record, {len(imported.times)} times)\n")
        else:
            stream.write(f"not written: {render_text.finding_counts(found, style)}\n")
        for line in render_text.findings(found, limit=None, style=style, names=render_text.names_of(imported.program)):
            stream.write(line + "\n")
    return FINDINGS if has_errors(found) else OK


def _write_times(imported: Imported, name: str, console: Console) -> str:
    """Write the run record of a trace.

    Raises:
        Failure: the source says no times.
    """
    from dtir.cli.writing import write
    from dtir.trace_times import trace_times

    record = trace_times(imported)
    if record is None:
        raise failure("cli.usage", f"{imported.label} says no times", hint="leave --times out")
    write(name, record.to_json(), console)
    return name


COMMAND = Command("convert", "import a program and save it as a snapshot", _configure, _run)
