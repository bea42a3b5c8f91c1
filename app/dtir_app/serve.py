"""Starting the explorer: one process, this machine only, nothing fetched from elsewhere."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

# Before panel is imported: anything but "server" makes the page load parts of itself from a CDN, whatever else is set.
os.environ["BOKEH_RESOURCES"] = "server"

from bokeh.server.server import Server
from panel.io.server import get_server
from tornado.ioloop import IOLoop

from dtir_app.gallery import examples
from dtir_app.library import Library
from dtir_app.session import create_app

LOOPBACK = ("127.0.0.1", "localhost")
KEEP_ALIVE_MS = 20_000
UNUSED_SESSION_MS = 60_000


def origins(host: str, port: int) -> list[str]:
    """The addresses that a page may open its websocket from: this server's own."""
    return [f"{name}:{port}" for name in (LOOPBACK if host in LOOPBACK else (host,))]


def probe(host: str, port: int = 0) -> int:
    """A port that can be listened on: the given one, or any free one for 0.

    The allowed origins name the port, so it must be known before the server is made.

    Raises:
        OSError: it cannot be listened on.
    """
    if ":" in host:
        raise OSError(errno.EAFNOSUPPORT, "IPv6 addresses are not supported")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((host, port))
        return int(own.getsockname()[1])


def make_server(library: Library, host: str, port: int) -> Server:
    """The server, listening, not yet running.

    Raises:
        OSError: it cannot listen there.
    """
    port = probe(host, port)
    return get_server(
        {"/": create_app(library)},
        address=host,
        port=port,
        websocket_origin=origins(host, port),
        title="dtir explorer",
        show=False,
        start=False,
        admin=False,
        unused_session_lifetime_milliseconds=UNUSED_SESSION_MS,
        check_unused_sessions_milliseconds=10_000,
        keep_alive_milliseconds=KEEP_ALIVE_MS,
    )


def serve(
    paths: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    root: Path | None = None,
) -> None:
    """Serve the explorer until it is interrupted.

    Prints one line with the address when it listens.

    Args:
        paths: programs to open; the first is shown. None opens the gallery.
        host: address to listen on.
        port: port, 0 for any free one.
        open_browser: whether to open a browser at the address.
        root: folder whose programs are offered besides, also to links (``?f=NAME``).

    Raises:
        OSError: it cannot listen there.
    """
    library = Library(paths, examples(), folder=root)
    server = make_server(library, host, port)
    loop = IOLoop.current()

    def stop(number: int, frame: FrameType | None) -> None:
        loop.add_callback_from_signal(loop.stop)

    # Before the address is said: whoever reads it may ask us to end at once.
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.start()
        if library.first:
            library.open(library.first)
        url = f"http://{host}:{server.port}/"
        sys.stdout.write(f"dtir explorer at {url} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        if open_browser:
            webbrowser.open(url)
        loop.start()
    finally:
        server.stop()
        library.close()
        for number, handler in previous.items():
            signal.signal(number, handler)
