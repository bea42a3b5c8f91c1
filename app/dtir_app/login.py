"""Logging in: Panel's basic authentication with a file of users, and its OAuth providers with settings from the environment.

Nothing secret is ever an argument of a command: others on the machine can read those.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE_LIMIT_BYTES = 1 << 20
COOKIE_SECRET = "PANEL_COOKIE_SECRET"
OAUTH_NEEDED = ("PANEL_OAUTH_KEY", "PANEL_OAUTH_SECRET", COOKIE_SECRET)


class LoginError(Exception):
    """The login cannot be set up; the text says what is missing, `hint` how to mend it."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Login:
    """How people log in.

    Args:
        arguments: of `panel.io.server.get_server`.
        text: for the line that the server prints.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    text: str = ""


NO_LOGIN = Login()


def read_login(said: str, environment: Mapping[str, str] = os.environ) -> Login:
    """What ``--auth`` says: ``basic:USERS.json`` or ``oauth:PROVIDER``.

    A file of users is a JSON object of names and passwords. The key and secret of an OAuth provider, and what else Panel knows of
    it (``PANEL_OAUTH_REDIRECT_URI``, ``PANEL_OAUTH_SCOPE``, …), are environment variables; their names are Panel's.

    Raises:
        LoginError: the file is no such object, the provider is unknown, or a variable is not set.
    """
    how, _, what = said.partition(":")
    match how:
        case "basic" if what:
            return _basic(Path(what), environment)
        case "oauth" if what:
            return _oauth(what, environment)
        case _:
            raise LoginError(
                f"--auth {said}: this is no way to log in", "basic:USERS.json, or oauth:PROVIDER (github, okta, ...)"
            )


def _basic(path: Path, environment: Mapping[str, str]) -> Login:
    want = 'a JSON object of names and passwords: {"ada": "..."}'
    try:
        if path.stat().st_size > FILE_LIMIT_BYTES:
            raise LoginError(f"--auth: {path} is larger than {FILE_LIMIT_BYTES} bytes", f"it should be {want}")
        users = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoginError(f"--auth: {path} cannot be read: {error.strerror or error}", f"name {want}") from error
    except (ValueError, RecursionError) as error:
        raise LoginError(f"--auth: {path} is no JSON", f"it should be {want}") from error
    fits = isinstance(users, dict) and users
    if not fits or not all(isinstance(word, str) and word and name for name, word in users.items()):
        raise LoginError(f"--auth: {path} does not hold users", f"it should be {want}")
    # The users and not the file's name: Panel would take the name of a file that is gone for a password that all share.
    arguments = {"basic_auth": users, "cookie_secret": _cookie_secret(environment), **_pages()}
    return Login(arguments, f"login with a user of {path.name}")


def _oauth(provider: str, environment: Mapping[str, str]) -> Login:
    from panel.auth import AUTH_PROVIDERS

    if provider not in AUTH_PROVIDERS:
        raise LoginError(f"--auth: there is no OAuth provider {provider!r}", f"one of {', '.join(AUTH_PROVIDERS)}")
    missing = [name for name in OAUTH_NEEDED if not environment.get(name)]
    if missing:
        raise LoginError(
            f"--auth oauth:{provider} needs the environment variable{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            "set what the provider gave you; PANEL_COOKIE_SECRET is any long random text",
        )
    arguments = {
        "oauth_provider": provider,
        "oauth_key": environment["PANEL_OAUTH_KEY"],
        "oauth_secret": environment["PANEL_OAUTH_SECRET"],
        "cookie_secret": environment[COOKIE_SECRET],
        "logout_template": _pages()["logout_template"],
    }
    if address := environment.get("PANEL_OAUTH_REDIRECT_URI"):
        arguments["oauth_redirect_uri"] = address
    if key := environment.get("PANEL_OAUTH_ENCRYPTION"):
        _encrypt(key)
    return Login(arguments, f"login through {provider}")


def _encrypt(key: str) -> None:
    """Let Panel encrypt what it keeps of a login in cookies."""
    import panel as pn

    try:
        from cryptography.fernet import Fernet
    except ModuleNotFoundError as error:
        raise LoginError("PANEL_OAUTH_ENCRYPTION needs the package cryptography", "pip install cryptography") from error
    try:
        pn.state.encryption = Fernet(key)
    except ValueError as error:
        raise LoginError(
            "PANEL_OAUTH_ENCRYPTION is no key", "it is 32 bytes in URL-safe base64; panel oauth-secret makes one"
        ) from error


def _pages() -> dict[str, str]:
    """Our own pages of logging in and out: Panel's load pictures from elsewhere."""
    here = Path(__file__).parent
    return {"login_template": str(here / "login.html"), "logout_template": str(here / "logout.html")}


def _cookie_secret(environment: Mapping[str, str]) -> str:
    """The given one, so that a login outlives the server; else one of this server's own."""
    return environment.get(COOKIE_SECRET) or secrets.token_hex(32)
