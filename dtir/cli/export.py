"""``dtir export``: a result to hand on, by the suffix of the file that is written.

A format is one line in `FORMATS`. What draws pictures lives in the app, which an installation may lack: a format of the app
looks its writer up with `from_app`, which says which extra is missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dtir.cli.command import OK, Command, Console, add_format, failure
from dtir.cli.writing import write_bytes

Make = Callable[[argparse.Namespace, Console], bytes]
"""Makes the bytes of the file from the options (`file`, `program`, `profile`, `output`); may raise `Failure`."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be written.

    Args:
        suffix: what the name of the file ends with, lower case, with the leading dot; the longest that fits is taken.
        what: what it is, for a list.
        load: gives the function that makes it, loaded only when the format is asked for; may raise `Failure`.
    """

    suffix: str
    what: str
    load: Callable[[], Make]


def _trace() -> Make:
    from dtir.cli.export_trace import make_trace

    return make_trace


def _sarif() -> Make:
    from dtir.cli.export_sarif import make_sarif

    return make_sarif


def from_app(module: str, name: str) -> Callable[[], Make]:
    """A writer of the app: function `name` of `dtir_app.<module>`.

    Raises (when called):
        Failure: the `app` extra is not installed.
    """

    def load() -> Make:
        try:
            return _attribute(f"dtir_app.{module}", name)
        except ModuleNotFoundError as error:
            if not error.name or error.name.startswith(("dtir.", "dtir_app.")):
                raise
            raise failure(
                "cli.missing_extra",
                f"this format needs the package {error.name}, which is not installed",
                hint="pip install 'dtir[app]' (in a checkout: pip install -e '.[app]')",
            ) from error

    return load


def _attribute(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


FORMATS: tuple[Format, ...] = (
    Format(".trace.json", "a Chrome trace, measured and planned: it opens in Perfetto", _trace),
    Format(".trace.json.gz", "the same, packed", _trace),
    Format(".html", "a page that needs no server and no network", from_app("exporting.writers", "make_html")),
    Format(".svg", "a picture of a view, in vectors", from_app("exporting.writers", "make_svg")),
    Format(".png", "the same, in pixels, drawn by Chromium", from_app("exporting.writers", "make_png")),
    Format(".sarif", "findings, for editors and code review (SARIF 2.1.0)", _sarif),
)


def format_of(name: str) -> Format:
    """The format that a file name asks for.

    Raises:
        Failure: none.
    """
    lowered = name.lower()
    fitting = [item for item in FORMATS if lowered.endswith(item.suffix)]
    if not fitting:
        raise failure(
            "cli.usage",
            f"{name}: no format that can be written has that suffix",
            hint="what can be written: " + "; ".join(f"{item.suffix} ({item.what})" for item in FORMATS),
        )
    return max(fitting, key=lambda item: len(item.suffix))


def _configure(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(item.suffix for item in FORMATS)
    parser.add_argument(
        "file", metavar="FILE", help="a program or a run record, recognised by content; .gz is read through"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help=f"where to write; its suffix says what: {known}"
    )
    parser.add_argument("--program", metavar="NAME", help="which program, of a file that holds several")
    parser.add_argument("--profile", metavar="P", help="machine profile of planned times: a preset, or a profile file")
    parser.add_argument("--ranks", type=_positive, metavar="N", help="traces: most ranks that are drawn (default: 64)")
    parser.add_argument("--view", metavar="VIEW", help="pictures: the view that is drawn (default: graph)")
    parser.add_argument("--select", metavar="ID", help="pictures: what is selected: node:..., value:... or a name")
    parser.add_argument("--dark", action="store_true", help="pictures: the dark theme")
    parser.add_argument(
        "--size", type=_size, metavar="WxH", help="pictures: pixels (default: where labels can be read)"
    )
    add_format(parser, "text", "json")


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()) or not all(16 <= int(side) <= 8192 for side in (width, height)):
        raise argparse.ArgumentTypeError(f"{text!r} is no size of 16 to 8192 pixels a side (1200x800)")
    return int(width), int(height)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of ranks")
    return int(text)


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import render_json

    if options.output == "-":
        raise failure(
            "cli.usage", "the format follows from the suffix of a file name, and - has none", hint="-o x.trace.json"
        )
    chosen = format_of(options.output)
    made = chosen.load()(options, console)
    write_bytes(options.output, made)
    if options.format == "json":
        console.out.write(render_json.text({"written": options.output}))
    else:
        console.out.write(f"written {options.output} ({chosen.what}, {len(made)} bytes)\n")
    return OK


COMMAND = Command("export", "write a result to hand on: traces, pages, pictures, by suffix", _configure, _run)
