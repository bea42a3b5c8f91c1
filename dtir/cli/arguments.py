"""The argument parser: one subparser per command, and errors that say what may have been meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from dtir._version import __version__
from dtir.cli import calibrate, check, convert, cost, diff, explain, explore, export, run, show, verify
from dtir.cli.command import Command, failure

COMMANDS: dict[str, Command] = {
    module.COMMAND.name: module.COMMAND
    for module in (show, verify, convert, run, diff, check, cost, calibrate, export, explore, explain)
}

_UNKNOWN_OPTIONS = re.compile(r"unrecognized arguments: (.*)")


class Parser(argparse.ArgumentParser):
    """Raises `Failure` instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        hint = f"{self.prog} --help"
        unknown = _UNKNOWN_OPTIONS.match(message)
        if unknown:
            first = unknown[1].split()[0].split("=")[0]
            options = [option for action in self._actions for option in action.option_strings]
            close = get_close_matches(first, options, n=1) if first.startswith("-") else []
            hint = f"did you mean {close[0]}?" if close else hint
        raise failure("cli.usage", message, hint=hint)


def build() -> tuple[Parser, dict[str, Parser]]:
    """The parser, and that of each command."""
    parser = Parser(
        prog="dtir",
        description="Open, verify and explore distributed tensor programs.",
        epilog="Exit codes: 0 nothing wrong, 1 findings of severity error, 2 could not run.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dtir {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    parsers: dict[str, Parser] = {}
    for command in COMMANDS.values():
        own = commands.add_parser(command.name, help=command.summary, description=command.summary, allow_abbrev=False)
        command.configure(own)
        parsers[command.name] = own
    return parser, parsers


def parse(argv: Sequence[str]) -> tuple[Command, argparse.Namespace] | None:
    """The command and its options; None when help was asked for by giving nothing.

    Raises:
        Failure: the arguments are not understood.
        SystemExit: ``--help`` or ``--version``.
    """
    parser, parsers = build()
    if not argv:
        parser.print_help()
        return None
    name = argv[0]
    if name in COMMANDS:
        # Straight to the command's own parser: its errors then name its own options.
        return COMMANDS[name], parsers[name].parse_args(argv[1:])
    if name.startswith("-"):
        parser.parse_args(argv)
        raise failure("cli.usage", "no command was given", hint=f"commands: {', '.join(COMMANDS)}")
    close = get_close_matches(name, COMMANDS, n=1)
    known = f"commands: {', '.join(COMMANDS)}"
    raise failure(
        "cli.usage", f"there is no command {name!r}", hint=f"did you mean {close[0]}? ({known})" if close else known
    )
