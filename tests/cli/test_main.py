"""The command line as a whole: arguments, exit codes, a closed pipe, an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dtir_app import serve
from dtir_app.serve import Served

from dtir._version import __version__
from dtir.cli import arguments, explore
from dtir.importers import Limits
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
    monkeypatch.delitem(sys.modules, "dtir_app.serve", raising=False)
    monkeypatch.setitem(sys.modules, "panel.io.server", None)
    done = run("explore")
    assert done.code == 2
    assert "cli.missing_extra" in done.err
    assert "pip install" in done.err


def test_explore_hands_over_what_was_asked(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    calls: list[tuple[object, Served]] = []
    monkeypatch.setattr(serve, "serve", lambda files, served: calls.append((files, served)))
    assert run("explore", path, "--no-browser", "--port", "0").code == 0
    assert calls == [([path], Served(open_browser=False))]
    calls.clear()
    more = ("--max-input", "2MiB", "--max-depth", "9", "--max-items", "8", "--max-upload", "1k", "--cache", "3g")
    given = ("--root", tmp_path, "--num-procs", "2", "--allow-origin", "a.example", "--allow-origin", "b.example:81")
    assert run("explore", "--address", "0.0.0.0", "--allow-remote", *given, *more).code == 0
    assert calls[0][1] == Served(
        host="0.0.0.0",
        port=explore.DEFAULT_PORT,
        root=tmp_path,
        allowed=("a.example", "b.example:81"),
        processes=2,
        limits=Limits(size_bytes=2 << 20, json_depth=9, items=8),
        upload_bytes=1024,
        cache_bytes=3 << 30,
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--address", "0.0.0.0"), "--allow-remote"),
        (("--host", "::"), "--allow-remote"),
        (("--allow-origin", "https://lab.example/"), "is no origin"),
        (("--auth", "hunter2"), "no way to log in"),
        (("--auth", "basic:no-such-file.json"), "cannot be read"),
        (("--num-procs", "0"), "above 0"),
        (("--max-upload", "much"), "is no size"),
    ],
)
def test_explore_refuses_what_would_surprise(run: Run, argv: tuple[str, ...], said: str) -> None:
    done = run("explore", "--no-browser", "--port", "0", *argv)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")


def test_explore_on_a_port_that_is_taken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(files: object, served: Served) -> None:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(serve, "serve", taken)
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
