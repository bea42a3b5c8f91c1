"""Starting the explorer: this machine only unless told otherwise, nothing fetched from elsewhere."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

# Before panel is imported: anything but "server" makes the page load parts of itself from a CDN, whatever else is set.
os.environ["BOKEH_RESOURCES"] = "server"

from bokeh.server.server import Server
from panel.io.server import get_server
from tornado.ioloop import IOLoop

from dtir.importers import DEFAULT_LIMITS, Limits
from dtir_app.gallery import examples
from dtir_app.library import CACHE_BYTES, UPLOAD_LIMIT_BYTES, UPLOAD_LIMITS, Library
from dtir_app.login import NO_LOGIN, Login, LoginError, read_login
from dtir_app.memory import set_aside
from dtir_app.network import is_loopback, is_origin, netloc, origins, policy_transform, probe
from dtir_app.processes import Leash, is_first
from dtir_app.session import create_app

__all__ = ["LoginError", "Served", "is_loopback", "is_origin", "make_server", "serve"]

SWITCH_S = 0.0005
"""How long a worker thread computes on while the event loop wants to answer. Python's 5 ms add up over the dozen writes of a click."""
KEEP_ALIVE_MS = 20_000
UNUSED_SESSION_MS = 60_000


@dataclass(frozen=True, slots=True)
class Served:
    """How the explorer is served.

    Args:
        host: address to listen on.
        port: port, 0 for any free one.
        open_browser: whether to open a browser at the address.
        root: folder whose programs are offered besides, also to links (``?f=NAME``).
        allowed: further hosts (with ports) whose pages may connect or show the explorer in a frame.
        auth: how people log in, as `read_login` takes it; empty for no login.
        processes: number of server processes.
        limits: what is read of a file, at most.
        upload_bytes: size of a file that may be dropped onto the page.
        cache_bytes: memory for programs that were opened.
    """

    host: str = "127.0.0.1"
    port: int = 0
    open_browser: bool = True
    root: Path | None = None
    allowed: tuple[str, ...] = ()
    auth: str = ""
    processes: int = 1
    limits: Limits = DEFAULT_LIMITS
    upload_bytes: int = UPLOAD_LIMIT_BYTES
    cache_bytes: int = CACHE_BYTES


def make_server(
    library: Library,
    host: str,
    port: int,
    *,
    allowed: Sequence[str] = (),
    login: Login = NO_LOGIN,
    processes: int = 1,
) -> Server:
    """The server, listening, not yet running. With several processes this returns once in each of them.

    Raises:
        OSError: it cannot listen there.
        SystemExit: in the parent of several processes, when they all ended.
    """
    port = probe(host, port)
    names = origins(host, port, allowed)
    server = get_server(
        {"/": create_app(library)},
        address=host,
        port=port,
        # Bokeh takes no IPv6 address here; what it compares with is set below.
        websocket_origin=[name for name in names if not name.startswith("[")] or [f"localhost:{port}"],
        title="dtir explorer",
        location=False,  # the page keeps its own address
        show=False,
        start=False,
        admin=False,
        unused_session_lifetime_milliseconds=UNUSED_SESSION_MS,
        check_unused_sessions_milliseconds=10_000,
        keep_alive_milliseconds=KEEP_ALIVE_MS,
        num_procs=processes,
        **login.arguments,
    )
    application = server._tornado
    application.websocket_origins.update(names)
    application.add_transform(policy_transform(names))
    return server


def serve(paths: Sequence[Path], served: Served) -> None:
    """Serve the explorer until it is interrupted.

    Prints one line with the address when it listens.

    Args:
        paths: programs to open; the first is shown. None opens the gallery.
        served: where and how.

    Raises:
        OSError: it cannot listen there.
        LoginError: the login cannot be set up.
    """
    login = read_login(served.auth) if served.auth else NO_LOGIN
    upload = Limits(
        size_bytes=min(served.limits.size_bytes, UPLOAD_LIMITS.size_bytes),
        json_depth=served.limits.json_depth,
        items=served.limits.items,
    )
    library = Library(
        paths,
        examples(),
        folder=served.root,
        limits=served.limits,
        upload_limits=upload,
        upload_bytes=served.upload_bytes,
        cache_bytes=served.cache_bytes,
        settled=set_aside,
    )
    leash = Leash() if served.processes > 1 else None
    server = make_server(
        library, served.host, served.port, allowed=served.allowed, login=login, processes=served.processes
    )
    loop = IOLoop.current()
    sys.setswitchinterval(SWITCH_S)

    def stop(number: int, frame: FrameType | None) -> None:
        loop.add_callback_from_signal(loop.stop)

    # Before the address is said: whoever reads it may ask us to end at once.
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    if leash is not None:
        leash.hold(loop, loop.stop)
    try:
        server.start()
        if library.first:
            library.open(library.first)
        if is_first():
            _say(served, server, login)
        loop.start()
    finally:
        server.stop()
        library.close()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _say(served: Served, server: Server, login: Login) -> None:
    url = f"http://{netloc(served.host, server.port)}/"
    notes = ["Ctrl-C ends it"]
    if not is_loopback(served.host):
        notes.insert(0, "everybody who reaches this address may open what it serves" if not login.text else login.text)
    elif login.text:
        notes.insert(0, login.text)
    sys.stdout.write(f"dtir explorer at {url} ({'; '.join(notes)})\n")
    sys.stdout.flush()
    if served.open_browser:
        webbrowser.open(url)
