"""Where the server listens, who may talk to it, and what a page of it may load: nothing from anywhere else."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from collections.abc import Sequence

from tornado.httputil import HTTPHeaders
from tornado.web import OutputTransform

LOOPBACK = ("127.0.0.1", "localhost")
WILDCARDS = ("", "0.0.0.0", "::")

_ORIGIN = re.compile(r"(?:\*|[A-Za-z0-9*][A-Za-z0-9.*-]*|\[[0-9A-Fa-f:.]+\])(?::(?:\d{1,5}|\*))?")


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    >>> is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def is_origin(text: str) -> bool:
    """Whether a text can name where a page comes from: ``HOST``, ``HOST:PORT``, ``*`` for any part; no scheme, no path.

    >>> is_origin("lab.example:8443"), is_origin("https://lab.example/")
    (True, False)
    """
    return _ORIGIN.fullmatch(text) is not None


def netloc(host: str, port: int) -> str:
    """Host and port as an address bar shows them; an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def origins(host: str, port: int, allowed: Sequence[str] = ()) -> list[str]:
    """The addresses that a page may open its websocket from: this server's own, and those that were allowed.

    A server on every address of the machine goes by any name; besides loopback only the names that were allowed count.
    """
    if host in WILDCARDS:
        own: tuple[str, ...] = (*LOOPBACK, "::1") if host == "::" else LOOPBACK
    elif is_loopback(host):
        own = tuple(dict.fromkeys((*(LOOPBACK if ":" not in host else ("localhost",)), host)))
    else:
        own = (host,)
    return [*(netloc(name, port) for name in own), *(_with_port(name) for name in allowed)]


def _with_port(origin: str) -> str:
    # A page at the default port names none; the check of the server takes that for port 80.
    return origin if re.search(r":(?:\d+|\*)$", origin) else f"{origin}:80"


def probe(host: str, port: int = 0) -> int:
    """A port that can be listened on: the given one, or any free one for 0.

    The allowed origins name the port, so it must be known before the server is made.

    Raises:
        OSError: it cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((host, port))
        return int(own.getsockname()[1])


def content_policy(addresses: Sequence[str]) -> str:
    """What a page may load, as a content security policy: everything from this server, nothing from elsewhere.

    Scripts are made of text in the page (the template, Bokeh's callbacks) and of blobs (components), hence the exceptions.

    Args:
        addresses: hosts with ports that pages may connect from; they may also show the page in a frame.

    Source: W3C, "Content Security Policy Level 3".
    """
    sockets = " ".join(f"{scheme}://{name}" for name in addresses for scheme in ("ws", "wss"))
    frames = " ".join(addresses)
    return "; ".join(
        (
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            f"connect-src 'self' {sockets} blob:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            f"frame-ancestors 'self' {frames}",
        )
    )


def policy_transform(addresses: Sequence[str]) -> type[OutputTransform]:
    """A transform that puts the policy on every answer of the server."""
    policy = content_policy(addresses)

    class Policy(OutputTransform):
        """Adds headers to an answer."""

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            headers["Content-Security-Policy"] = policy
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            return status_code, headers, chunk

    return Policy
