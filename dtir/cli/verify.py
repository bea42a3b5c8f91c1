"""``dtir verify``: is the program right?"""

from __future__ import annotations

import argparse

from dtir.cli.command import FAILED, FINDINGS, OK, Command, Console, add_files, add_format, has_errors, worst
from dtir.cli.judges import DEFAULT_JUDGES, JUDGES, MODES, STRICTNESS
from dtir.cli.systems import add_system


def _judges(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in names if name not in JUDGES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown judge {unknown[0]!r} (known: {', '.join(JUDGES)})")
    return names


def _configure(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_format(parser, "text", "json", "sarif")
    parser.add_argument(
        "--judge",
        type=_judges,
        metavar="NAMES",
        help=f"judges, separated by commas: {', '.join(JUDGES)} (default: {','.join(DEFAULT_JUDGES)}; structure always runs)",
    )
    parser.add_argument(
        "--mode", choices=MODES, help="check the layouts as stated, or infer them (default: as the program asks for)"
    )
    parser.add_argument(
        "--strictness",
        choices=STRICTNESS,
        default="nccl",
        help="orders of communication that the runtime tolerates: one for each communicator (mpi), one for all of a device "
        "(nccl, the default), also ungrouped sends wait for their receiver (gpu-p2p)",
    )
    add_system(parser)
    parser.add_argument("--all", action="store_true", help="text: every finding")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir._version import __version__
    from dtir.cli import render_json, render_sarif, render_text
    from dtir.cli.failing import report
    from dtir.cli.inputs import load_each, merged
    from dtir.cli.judges import judge
    from dtir.cli.states_text import NO_STATES, States

    codes: list[int] = []
    judged: list[render_sarif.Judged] = []
    for name, imported in load_each(options.files, console, options.system):
        if imported.program is None:
            codes.append(FAILED)
            judged.append(render_sarif.Judged(name, tuple(imported.diagnostics), readable=False))
            report(name, tuple(imported.diagnostics), console)
            continue
        verdict = judge(
            imported.program, options.judge or DEFAULT_JUDGES, mode=options.mode, strictness=options.strictness
        )
        found = merged(imported.diagnostics, verdict.diagnostics)
        codes.append(FINDINGS if has_errors(found) else OK)
        judged.append(render_sarif.Judged(name, found))
        if options.format == "text":
            lines = render_text.verified(
                imported.label,
                found,
                judges=verdict.ran,
                show_all=options.all,
                style=console.style,
                names=render_text.names_of(imported.program) if found else render_text.NO_NAMES,
                states=States.of(imported.program) if found else NO_STATES,
            )
            console.out.write("\n".join(lines) + "\n")
    if options.format == "sarif":
        console.out.write(render_json.text(render_sarif.report(judged, version=__version__)))
    elif options.format == "json":
        results = [render_json.verified(one.diagnostics) for one in judged]
        console.out.write(render_json.text(render_json.per_file([one.name for one in judged], results)))
    return worst(codes)


COMMAND = Command("verify", "judge a program and report every finding", _configure, _run)
