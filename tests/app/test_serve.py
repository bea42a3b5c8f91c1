from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from dtir_app.library import Library
from dtir_app.serve import make_server, origins, probe

from tests.app.build import example
from tests.helpers.explorer import start_explorer

APP = Path(__file__).parents[2] / "app"


def test_only_its_own_addresses_may_connect() -> None:
    assert origins("127.0.0.1", 5006) == ["127.0.0.1:5006", "localhost:5006"]
    assert origins("10.0.0.7", 80) == ["10.0.0.7:80"]


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
    with pytest.raises(OSError, match="IPv6"):
        make_server(Library(), "::1", 0)


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
