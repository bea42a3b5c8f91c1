"""The command line: parse, call the library, print.

``main`` returns the exit code: 0 nothing wrong, 1 findings of severity error, 2 could not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell reports for a process that SIGINT (2) or SIGPIPE (13) ended: 128 and the number."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; None for those of the process.

    Returns:
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its escape; it is no reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. What is still buffered must not fail once more when the interpreter ends.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return code


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["_mpi-worker"]:
        # A process of a run, started by mpiexec. What goes wrong in it must reach mpi4py, which then ends the others.
        from dtir.execute.launch_worker import main as work

        return work(arguments[1:])
    from dtir.cli.arguments import parse
    from dtir.cli.command import FAILED, OK, Console, Failure
    from dtir.cli.failing import report

    console = Console(sys.stdout, sys.stderr)
    try:
        parsed = parse(arguments)
        if parsed is None:
            return OK
        command, options = parsed
        return command.run(options, console)
    except Failure as failed:
        report(None, tuple(failed.diagnostics), console)
        if _wants_json(arguments):
            from dtir.cli import render_json

            console.out.write(render_json.text(render_json.failed(failed.diagnostics)))
        return FAILED
    except SystemExit as ended:  # --help and --version
        return ended.code if isinstance(ended.code, int) else OK


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether JSON was asked for, told also when the arguments could not be parsed."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(
        one in ("--format=json", "--format=sarif") or (one == "--format" and two in ("json", "sarif"))
        for one, two in pairs
    )
