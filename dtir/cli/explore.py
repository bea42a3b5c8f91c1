"""``dtir explore``: the explorer in a browser."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from dtir.cli.command import OK, Command, Console, failure
from dtir.cli.systems import add_system

DEFAULT_PORT = 5006
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3}


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port (0 to 65535; 0 takes any free one)")
    return port


def _size_bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})\s*([kmg]?)(?:i?b)?", text.strip().lower())
    size = int(found[1]) * 1024 ** _UNITS[found[2]] if found else 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size (64MiB, 500k, 1048576)")
    return size


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return count


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="programs to open, run records (dtir run -o) to compare them with, and machine profiles (dtir calibrate -o) to plan "
        "with; none: the gallery",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="folder whose programs may be opened by link")
    add_system(parser)
    where = parser.add_argument_group("where it listens")
    where.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help=f"port to listen on, 0 for any free one (default: {DEFAULT_PORT})",
    )
    where.add_argument(
        "--address",
        "--host",
        dest="host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on, IPv4 or IPv6 (default: 127.0.0.1, this machine only)",
    )
    where.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow an --address that other machines can reach: whoever reaches it sees every program it serves and may drop files",
    )
    where.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="HOST[:PORT]",
        help="a further name under which browsers may use it, say behind a proxy, or whose pages may show it in a frame; repeatable",
    )
    where.add_argument(
        "--auth",
        default="",
        metavar="HOW",
        help="ask for a login: basic:USERS.json (an object of names and passwords) or oauth:PROVIDER, with Panel's environment "
        "variables PANEL_OAUTH_KEY, PANEL_OAUTH_SECRET, PANEL_COOKIE_SECRET",
    )
    where.add_argument(
        "--num-procs",
        type=_count,
        default=1,
        metavar="N",
        help="server processes on the one port (default: 1); each keeps programs of its own, also dropped ones",
    )
    caps = parser.add_argument_group("how much it takes")
    caps.add_argument(
        "--max-input", type=_size_bytes, metavar="SIZE", help="what a file may unpack to (default: 512MiB)"
    )
    caps.add_argument("--max-depth", type=_count, metavar="N", help="levels that JSON may nest (default: 10000)")
    caps.add_argument("--max-items", type=_count, metavar="N", help="lines and commas of an input (default: 100000000)")
    caps.add_argument("--max-upload", type=_size_bytes, metavar="SIZE", help="size of a dropped file (default: 64MiB)")
    caps.add_argument(
        "--cache", type=_size_bytes, metavar="SIZE", help="memory for programs that were opened (default: 1GiB)"
    )


def _app() -> Any:
    """The launcher of the app.

    Raises:
        Failure: the `app` extra is not installed.
    """
    try:
        import dtir_app.serve as app
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith(("dtir.", "dtir_app.")):
            raise
        raise failure(
            "cli.missing_extra",
            f"the explorer needs the package {error.name}, which is not installed",
            hint="pip install 'dtir[app]' (in a checkout: pip install -e '.[app]')",
        ) from error
    return app


def _check_files(files: list[Path], root: Path | None) -> None:
    for path in files:
        if str(path) == "-":
            raise failure("cli.usage", "the explorer does not read standard input", hint="save it to a file first")
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            code = "input.directory" if path.is_dir() else "input.not_found"
            hint = (
                "--root FOLDER offers the programs of a folder" if path.is_dir() else "name files, or none: the gallery"
            )
            raise failure(code, f"{path} {what}", hint=hint)
    if root is not None and not root.is_dir():
        raise failure("input.not_found", f"--root {root} is no folder", hint="name a folder with programs")


def _check_network(options: argparse.Namespace, app: Any) -> None:
    if not app.is_loopback(options.host) and not options.allow_remote:
        raise failure(
            "cli.usage",
            f"at --address {options.host} other machines can reach the explorer: whoever does sees every program it serves",
            hint="--allow-remote says that this is meant; --auth asks for a login, --allow-origin names the address that browsers use",
        )
    for name in options.allow_origin:
        if not app.is_origin(name):
            raise failure(
                "cli.usage",
                f"--allow-origin {name} is no origin",
                hint="HOST or HOST:PORT, without http:// and without a path",
            )
    if options.num_procs > 1 and sys.platform == "win32":
        raise failure("cli.usage", "--num-procs: this system has one process per server", hint="leave it out")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.importers import DEFAULT_LIMITS, Limits

    files = [Path(name) for name in options.files]
    _check_files(files, options.root)
    from dtir.cli.systems import programs_of

    app = _app()
    _check_network(options, app)
    limits = Limits(
        size_bytes=options.max_input or DEFAULT_LIMITS.size_bytes,
        json_depth=options.max_depth or DEFAULT_LIMITS.json_depth,
        items=options.max_items or DEFAULT_LIMITS.items,
    )
    given = {"upload_bytes": options.max_upload, "cache_bytes": options.cache}
    served = app.Served(
        host=options.host,
        port=options.port,
        open_browser=not options.no_browser,
        root=options.root,
        allowed=tuple(options.allow_origin),
        auth=options.auth,
        processes=options.num_procs,
        limits=limits,
        **{name: size for name, size in given.items() if size},
    )
    try:
        with programs_of(files, options.system) as opened:
            app.serve(opened, served)
    except app.LoginError as error:
        raise failure("cli.usage", str(error), hint=error.hint) from error
    except OSError as error:
        raise failure(
            "cli.port",
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}",
            hint="choose another port with --port, or --port 0 for any free one",
        ) from error
    return OK


COMMAND = Command("explore", "the explorer in a browser", _configure, _run)
