"""``dtir explore``: the explorer in a browser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from dtir.cli.command import OK, Command, Console, failure

DEFAULT_PORT = 5006


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port (0 to 65535; 0 takes any free one)")
    return port


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="programs to open; without any, the bundled gallery")
    parser.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help=f"port to listen on, 0 for any free one (default: {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="folder whose programs may be opened by link")


def _serve() -> Callable[..., None]:
    """The launcher of the app.

    Raises:
        Failure: the `app` extra is not installed.
    """
    try:
        from dtir_app.serve import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("dtir", ""):
            raise
        raise failure(
            "cli.missing_extra",
            f"the explorer needs the package {error.name}, which is not installed",
            hint="pip install 'dtir[app]' (in a checkout: pip install -e '.[app]')",
        ) from error
    return serve


def _run(options: argparse.Namespace, console: Console) -> int:
    files = [Path(name) for name in options.files]
    for path in files:
        if str(path) == "-":
            raise failure("cli.usage", "the explorer does not read standard input", hint="save it to a file first")
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            code = "input.directory" if path.is_dir() else "input.not_found"
            raise failure(code, f"{path} {what}", hint="name files, or use the bundled gallery without any")
    if options.root is not None and not options.root.is_dir():
        raise failure("input.not_found", f"--root {options.root} is no folder", hint="name a folder with programs")
    serve = _serve()
    try:
        serve(files, host=options.host, port=options.port, open_browser=not options.no_browser, root=options.root)
    except OSError as error:
        raise failure(
            "cli.port",
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}",
            hint="choose another port with --port, or --port 0 for any free one",
        ) from error
    return OK


COMMAND = Command("explore", "the explorer in a browser", _configure, _run)
