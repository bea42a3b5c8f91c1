"""``dtir cost``: planned times of a program on a machine, and where they come from."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from dtir.cli.command import OK, Command, Console, Failure, add_format, failure
from dtir.cli.systems import add_system

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.cost.profile import MachineProfile
    from dtir.cost.schedule import Options

DEFAULT_PROFILE = "h100-nvlink-ib"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a program, recognised by content; - is standard input; .gz is read through",
    )
    parser.add_argument("--profile", metavar="P", help=f"a preset, or a profile file (default: {DEFAULT_PROFILE})")
    parser.add_argument("--list-profiles", action="store_true", help="list the presets and their sources")
    parser.add_argument("--program", metavar="NAME", help="which program, of a file that holds several")
    parser.add_argument(
        "--seconds",
        action="append",
        default=[],
        metavar="TASK=S",
        help="time of tasks by name, id, operation, custom call target, pipeline phase or kind; may be repeated",
    )
    parser.add_argument(
        "--bind", action="append", default=[], metavar="NAME=N", help="value of a symbol; may be repeated"
    )
    parser.add_argument("--trips", type=int, metavar="N", help="how often loops run whose trip count the data decide")
    parser.add_argument("--blocking", action="store_true", help="collectives hold the compute stream: no overlap")
    parser.add_argument("--all", action="store_true", help="text: every task, collective and step")
    add_format(parser, "text", "json")
    add_system(parser)


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import cost_text, render_json
    from dtir.cli.inputs import load_one
    from dtir.cost.report import make_report
    from dtir.cost.report_json import tree
    from dtir.cost.schedule import make_schedule
    from dtir.schema.result import Err

    if options.list_profiles:
        return _list(options, console)
    if options.file is None:
        raise failure("cli.usage", "no FILE was given", hint="dtir cost FILE --profile P, or dtir cost --list-profiles")
    settings = _settings(options)
    profile = load_profile(options.profile or DEFAULT_PROFILE)
    imported = load_one(options.file, options.program, console, options.system)
    if imported.program is None:
        raise Failure(imported.diagnostics)
    made = make_schedule(imported.program, profile, settings)
    if isinstance(made, Err):
        raise Failure(made.error)
    report = make_report(made.value)
    chosen = [] if options.profile else [f"no --profile was given: {DEFAULT_PROFILE} is assumed"]
    if options.format == "json":
        whole = tree(report)
        whole["notes"] = [*chosen, *whole["notes"]]
        console.out.write(render_json.text(whole))
    else:
        lines = cost_text.planned(
            report, label=imported.label, remarks=chosen, show_all=options.all, style=console.style
        )
        console.out.write("\n".join(lines) + "\n")
    return OK


def _list(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import cost_text, render_json
    from dtir.cost.presets import load_preset, preset_names

    profiles = [load_preset(name) for name in preset_names()]
    if options.format == "json":
        rows = [
            {"id": item.id, "summary": item.summary, "standing": item.source.standing.value, "date": item.source.date,
             "source": item.source.text}
            for item in profiles
        ]  # fmt: skip
        console.out.write(render_json.text({"profiles": rows}))
    else:
        console.out.write("\n".join(cost_text.profiles(profiles, console.style)) + "\n")
    return OK


def load_profile(name: str) -> MachineProfile:
    """A preset by name, or a profile file.

    Raises:
        Failure: there is neither, or the file is no profile.
    """
    from difflib import get_close_matches
    from pathlib import Path

    from dtir.cost.presets import load_preset, preset_names
    from dtir.cost.profile_json import read_profile
    from dtir.schema.result import Err

    if name in preset_names():
        return load_preset(name)
    path = Path(name)
    if not path.is_file():
        close = get_close_matches(name, preset_names(), n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        known = f"presets: {', '.join(preset_names())}"
        raise failure("profile.unknown", f"there is no preset and no file {name!r}", hint=f"{meant}{known}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failure("profile.json", f"{name} cannot be read: {error}", hint="give a machine profile") from error
    found = read_profile(text)
    if isinstance(found, Err):
        raise Failure(found.error)
    return found.value


def _settings(options: argparse.Namespace) -> Options:
    from dtir.cost.schedule import Options

    if options.trips is not None and options.trips < 0:
        raise failure("cli.usage", f"--trips {options.trips} is negative", hint="give a number of rounds")
    seconds = _pairs("--seconds", options.seconds)
    if any(value < 0 for value in seconds.values()):
        raise failure("cli.usage", "--seconds gives a negative time", hint="give seconds of at least 0")
    bindings = {
        name: int(value) if value.is_integer() else value for name, value in _pairs("--bind", options.bind).items()
    }
    return Options(seconds, bindings, options.trips, options.blocking)


def _pairs(option: str, given: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in given:
        name, separator, text = item.rpartition("=")
        try:
            value = float(text) if separator and name else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise failure("cli.usage", f"{option} {item!r} does not read NAME=NUMBER", hint=f"{option} name=1e-3")
        found[name] = value
    return found


COMMAND = Command("cost", "planned times: schedule, critical path, exposed communication, memory", _configure, _run)
"""The command."""
