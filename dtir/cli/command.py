"""What a command is: arguments, a function, and the few things that every command shares."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TextIO

from dtir.cli.terminal import Style, style_for
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet, Severity

OK, FINDINGS, FAILED = 0, 1, 2
"""Exit codes: nothing wrong; findings of severity error; could not run."""


@dataclass(frozen=True, slots=True)
class Console:
    """Where a command writes.

    Args:
        out: results.
        err: what is not a result: failures, progress.
        environment: environment variables.
    """

    out: TextIO
    err: TextIO
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    @property
    def style(self) -> Style:
        """Colours for results."""
        return style_for(self.out, self.environment)

    @property
    def error_style(self) -> Style:
        """Colours for failures."""
        return style_for(self.err, self.environment)


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Args:
        name: as typed.
        summary: one line for the list of commands.
        configure: adds arguments to the command's parser.
        run: does it and returns the exit code; may raise `Failure`.
    """

    name: str
    summary: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Console], int]


class Failure(Exception):
    """A command could not run; `main` prints the findings and exits with 2."""

    def __init__(self, diagnostics: DiagnosticSet) -> None:
        super().__init__("; ".join(item.render() for item in diagnostics))
        self.diagnostics = diagnostics


def failure(code: str, message: str, *, hint: str) -> Failure:
    """A `Failure` with one finding."""
    return Failure(DiagnosticSet.of(Diagnostic(code, message, hint=hint)))


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Add ``--format``; the first is the default."""
    parser.add_argument("--format", choices=formats, default=formats[0], help=f"output format (default: {formats[0]})")


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the FILE arguments of a command that takes several."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a program, recognised by content; - is standard input; .gz is read through",
    )


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether a finding is an error."""
    return any(item.severity is Severity.ERROR for item in diagnostics)


def worst(codes: list[int]) -> int:
    """The exit code of several inputs: the highest."""
    return max(codes, default=OK)
