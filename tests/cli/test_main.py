"""The command line as a whole: arguments, exit codes, a closed pipe, an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dtir._version import __version__
from dtir.cli import arguments, explore
from tests.helpers.cli import Run
from tests.helpers.shared import ROOT


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"dtir {__version__}\n"
    for argv in ([], ["--help"]):
        done = run(*argv)
        assert done.code == 0
        assert all(name in done.out for name in arguments.COMMANDS)
    for name in arguments.COMMANDS:
        done = run(name, "--help")
        assert done.code == 0
        assert f"usage: dtir {name}" in done.out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["shwo", "x"], "did you mean show?"),
        (["frobnicate"], f"commands: {', '.join(arguments.COMMANDS)}"),
        (["show"], "FILE"),
        (["show", "x", "--frmat", "json"], "did you mean --format?"),
        (["show", "x", "--format", "xml"], "xml"),
        (["verify", "x", "--mode", "guess"], "guess"),
        (["convert", "x"], "-o"),
        (["convert", "x", "-o", "y", "--to", "yml"], "yml"),
        (["explore", "--port", "70000"], "70000"),
        (["explore", "--port", "x"], "'x' is no port"),
        (["show", "x", "--max-members", "many"], "many"),
        (["--frobnicate"], "--frobnicate"),
        (["show\x1b[2J"], r"show\x1b[2J"),
    ],
)
def test_arguments_that_are_not_understood(run: Run, argv: list[str], said: str) -> None:
    done = run(*argv)
    assert done.code == 2
    assert said in done.err
    assert "[cli.usage]" in done.err
    assert done.out == ""
    assert done.err.replace("\n", "").isprintable()


@pytest.mark.parametrize("form", [["--format", "json"], ["--format=json"]])
def test_arguments_that_are_not_understood_in_json(run: Run, form: list[str]) -> None:
    done = run("show", *form)
    assert (done.code, done.codes) == (2, ["cli.usage"])


def test_explore_without_its_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dtir_app.serve", None)
    done = run("explore")
    assert done.code == 2
    assert "cli.missing_extra" in done.err
    assert "pip install" in done.err


def test_explore_hands_over_what_was_asked(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    calls: list[tuple[object, dict[str, object]]] = []
    monkeypatch.setattr(explore, "_serve", lambda: lambda files, **options: calls.append((files, options)))
    assert run("explore", path, "--no-browser", "--port", "0").code == 0
    assert calls == [([path], {"host": "127.0.0.1", "port": 0, "open_browser": False, "root": None})]


def test_explore_on_a_port_that_is_taken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(files: object, **options: object) -> None:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(explore, "_serve", lambda: taken)
    done = run("explore", "--port", "5006")
    assert done.code == 2
    assert "Address already in use" in done.err


@pytest.mark.parametrize(("name", "code"), [("no", "input.not_found"), (".", "input.directory"), ("-", "cli.usage")])
def test_explore_of_what_is_no_file(run: Run, tmp_path: Path, name: str, code: str) -> None:
    done = run("explore", name if name == "-" else tmp_path / name)
    assert done.code == 2
    assert f"[{code}]" in done.err


def test_explore_with_a_root_that_is_no_folder(run: Run, tmp_path: Path) -> None:
    done = run("explore", "--root", tmp_path / "no")
    assert done.code == 2
    assert "is no folder" in done.err


def command(*argv: object, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dtir", *map(str, argv)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        **options,  # type: ignore[call-overload]
    )


def test_the_module_runs_as_a_program(snapshot: Path) -> None:
    running = command("show", snapshot)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, b"")
    assert out.decode().startswith("demo\n")
    running = command("show", "no-such-file", "--format", "json")
    out, err = running.communicate(timeout=60)
    assert running.returncode == 2
    assert b"input.not_found" in out
    assert err.count(b"\n") == 2


def test_a_reader_that_leaves_early_is_no_error() -> None:
    running = command("explain", "--list")
    assert running.stdout
    running.stdout.close()
    assert running.stderr
    assert running.stderr.read() == b""
    assert running.wait(timeout=60) == 141
    running.stderr.close()
    assert running.stdin
    running.stdin.close()


def test_an_interrupt_ends_without_a_traceback() -> None:
    running = command("show", "-")
    assert running.stdin
    # It waits for the rest of its input, and has said so by reading the first piece.
    running.stdin.write(b"HloModule m\n" * 20_000)
    running.stdin.flush()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert (out, err) == (b"", b"")


def test_a_terminal_that_cannot_show_a_character_shows_its_escape(snapshot: Path) -> None:
    running = command("show", snapshot, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, b"")
    assert rb"dp 2 \xd7 tp 4" in out
