from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from dtir_app.library import Library
from dtir_app.login import LoginError, read_login
from dtir_app.network import content_policy, is_loopback, is_origin, origins, probe
from dtir_app.serve import make_server

from tests.app.build import example
from tests.helpers.explorer import Explorer, start_explorer, stop_group

APP = Path(__file__).parents[2] / "app"


def test_only_its_own_addresses_may_connect() -> None:
    assert origins("127.0.0.1", 5006) == ["127.0.0.1:5006", "localhost:5006"]
    assert origins("10.0.0.7", 80) == ["10.0.0.7:80"]
    assert origins("::1", 5006) == ["localhost:5006", "[::1]:5006"]
    assert origins("127.0.0.2", 5006) == ["127.0.0.1:5006", "localhost:5006", "127.0.0.2:5006"]
    assert origins("0.0.0.0", 5006, ["lab.example", "x.example:8443"]) == [
        "127.0.0.1:5006",
        "localhost:5006",
        "lab.example:80",
        "x.example:8443",
    ]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("lab.example", True),
        ("lab.example:8443", True),
        ("*.example:*", True),
        ("[::1]:5006", True),
        ("https://lab.example", False),
        ("lab.example/path", False),
        ("lab.example:port", False),
        ("lab.example; script-src *", False),
        ("", False),
    ],
)
def test_an_origin_is_a_host_and_a_port(text: str, fits: bool) -> None:
    assert is_origin(text) is fits


def test_a_free_port_can_be_listened_on() -> None:
    port = probe("127.0.0.1")
    with socket.socket() as own:
        own.bind(("127.0.0.1", port))


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.listen()
        with pytest.raises(OSError, match="in use"):
            make_server(Library(), "127.0.0.1", own.getsockname()[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_one_line_and_ends_cleanly(number: signal.Signals) -> None:
    explorer = start_explorer([str(example("faults").path)])
    try:
        os.kill(explorer.process.pid, number)
        assert explorer.process.wait(timeout=20) == 0
        assert explorer.lines == [f"dtir explorer at {explorer.url} (Ctrl-C ends it)\n"]
        assert explorer.url.startswith("http://127.0.0.1:")
    finally:
        explorer.stop()


def test_no_setting_of_the_user_makes_the_page_load_from_elsewhere() -> None:
    script = "import dtir_app.serve; from panel.io.resources import use_cdn; print(use_cdn())"
    env = {**os.environ, "BOKEH_RESOURCES": "cdn"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "False"


def test_main_is_three_lines_of_work() -> None:
    lines = (APP / "main.py").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith('"""')] == [
        "from dtir_app.main import app",
        "app().servable()",
    ]


def _has_ipv6() -> bool:
    try:
        probe("::1")
    except OSError:
        return False
    return True


def get(url: str, path: str = "/", headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    """An answer of a server, redirects not followed."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=30)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, dict(answer.getheaders()), text


@pytest.fixture(scope="module")
def served() -> Iterator[Explorer]:
    explorer = start_explorer([str(example("faults").path)])
    yield explorer
    explorer.stop()


def test_every_answer_forbids_the_page_to_load_from_elsewhere(served: Explorer) -> None:
    for path in ("/", "/static/js/bokeh.min.js", "/no/such/page"):
        _, headers, _ = get(served.url, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "http:" not in policy
        assert "https:" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_policy_names_the_frames_that_were_allowed() -> None:
    assert "frame-ancestors 'self' lab.example:80" in content_policy(["lab.example:80"])


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
    ],
)
def test_which_addresses_stay_on_this_machine(address: str, inside: bool) -> None:
    assert is_loopback(address) is inside


def test_a_page_of_elsewhere_may_not_open_the_websocket(served: Explorer) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    for origin in ("http://evil.example", "http://127.0.0.1.evil.example:5006", "null"):
        status, _, _ = get(served.url, "/ws", {**upgrade, "Origin": origin})
        assert status == 403, origin


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback")
def test_it_listens_on_the_ipv6_loopback_too() -> None:
    command = [sys.executable, "-m", "dtir", "explore", "--no-browser", "--port", "0", "--address", "::1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout
        line = process.stdout.readline()
        url = line.split(" at ")[1].split(" ")[0]
        assert url.startswith("http://[::1]:")
        assert get(url)[0] == 200
    finally:
        stop_group(process)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
def test_several_processes_end_with_the_first() -> None:
    explorer = start_explorer(["--num-procs", "2", str(example("faults").path)])
    try:
        assert get(explorer.url)[0] == 200
        os.kill(explorer.process.pid, signal.SIGTERM)
        assert explorer.process.wait(timeout=20) == 0
        probe("127.0.0.1", urlsplit(explorer.url).port or 0)  # nobody holds the port any more
        assert len(explorer.lines) == 1
    finally:
        explorer.stop()


def test_a_login_is_asked_for_before_anything_is_shown(tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    users.write_text('{"ada": "engine"}')
    explorer = start_explorer(["--auth", f"basic:{users}", str(example("faults").path)])
    try:
        status, headers, text = get(explorer.url)
        assert (status, headers["Location"].split("?")[0]) == (302, "./login")
        _, _, text = get(explorer.url, "/login")
        assert "http" not in text.replace("http-equiv", "")
        where = urlsplit(explorer.url)
        answers: dict[str, list[str]] = {}
        for word in ("wrong", "engine", str(users)):
            connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=30)
            body = urlencode({"username": "ada", "password": word})
            connection.request("POST", "/login", body, {"Content-Type": "application/x-www-form-urlencoded"})
            answer = connection.getresponse()
            answer.read()
            answers[word] = [one for one in answer.headers.get_all("Set-Cookie") or [] if one.startswith("user=")]
            connection.close()
        assert answers["wrong"] == answers[str(users)] == []
        (cookie,) = answers["engine"]
        assert "HttpOnly" in cookie
        assert get(explorer.url, "/", {"Cookie": cookie.split(";")[0]})[0] == 200
        assert "engine" not in "".join(explorer.lines)
    finally:
        explorer.stop()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"ada": 1}', '{"": "x"}', '{"ada": ""}', "[" * 100_000])
def test_a_file_that_holds_no_users_is_refused(content: str, tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    users.write_text(content)
    with pytest.raises(LoginError):
        read_login(f"basic:{users}")


@pytest.mark.parametrize("said", ["secret", "basic:", "basic:/no/such/file", "oauth:nobody", "oauth:"])
def test_what_is_no_way_to_log_in_is_said(said: str) -> None:
    with pytest.raises(LoginError) as caught:
        read_login(said, {})
    assert caught.value.hint


def test_an_oauth_login_names_the_variables_that_are_missing() -> None:
    with pytest.raises(LoginError, match="PANEL_OAUTH_SECRET, PANEL_COOKIE_SECRET"):
        read_login("oauth:github", {"PANEL_OAUTH_KEY": "k"})
    environment = {"PANEL_OAUTH_KEY": "k", "PANEL_OAUTH_SECRET": "s", "PANEL_COOKIE_SECRET": "c"}
    arguments = read_login("oauth:github", environment).arguments
    assert (arguments["oauth_provider"], arguments["oauth_key"], arguments["cookie_secret"]) == ("github", "k", "c")
