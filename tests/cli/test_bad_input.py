"""Every command that reads a program, on every kind of input that is not one: exit code 2, one clear message, no traceback."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from dtir.cli import render_text
from dtir.schema.diagnostics import Diagnostic
from tests.helpers.cli import Done, Run
from tests.helpers.programs import program

MAKERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "input.empty"),
    "blank": (lambda: b" \n\n", "input.empty"),
    "brackets": (lambda: b"[" * 20_000_000, "input.too_deep"),
    "packed-brackets": (lambda: gzip.compress(b"[" * 20_000_000, 1), "input.too_deep"),
    "objects": (lambda: b'{"a":' * 1_000_000, "input.too_deep"),
    "latin-1": (lambda: "HloModule café\n".encode("latin-1"), "input.encoding"),
    "utf-16": (lambda: "HloModule m".encode("utf-16"), "input.encoding"),
    "utf-8-mark": (lambda: b"\xef\xbb\xbf{}", "input.encoding"),
    "picture": (lambda: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "input.unknown_format"),
    "prose": (lambda: b"This is no program.\n", "input.unknown_format"),
    "other-json": (lambda: b'{"hello": "world"}', "input.unknown_format"),
    "json-list": (lambda: b"[1, 2, 3]", "input.unknown_format"),
    "json-text": (lambda: b'"text"', "input.unknown_format"),
    "cut-other-json": (lambda: b'{"hello": ["wor', "input.truncated"),
    "pickle": (lambda: b"\x80\x04\x95\x10\0\0\0", "input.unsupported_format"),
    "bytecode": (lambda: b"ML\xefR\x0dStableHLO", "input.unsupported_format"),
    "group-table": (lambda: b'{"0": [0, 1]}', "trace.no_program"),
    "cut-archive": (lambda: gzip.compress(program().to_json().encode())[:-20], "input.truncated"),
    "cut-snapshot": (lambda: program().to_json().encode()[:-200], "serialization.snapshot"),
    "repeated-key": (lambda: b'{"digest":"",' + program().to_json().encode()[1:], "serialization.snapshot"),
    "not-a-number": (
        lambda: program().to_json().replace('"message_bytes":128', '"message_bytes":NaN').encode(),
        "serialization.snapshot",
    ),
    "huge-number": (lambda: program().to_json().replace("128", "1" * 10_000).encode(), "serialization.snapshot"),
    "bare-hlo": (lambda: b"HloModule m\n", "hlo.empty"),
    "cut-hlo": (lambda: b"HloModule m\n\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] add(a, ", "hlo.syntax"),
    "control-characters": (lambda: b'{"\\u001b[2J\\u202e": 1, "\x1b[2J": 2}', "input.unknown_format"),
}
COMMANDS = ("show", "verify", "convert")


@pytest.fixture(scope="module", params=MAKERS)
def bad(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    make, code = MAKERS[request.param]
    path = tmp_path_factory.mktemp("bad") / request.param
    path.write_bytes(make())
    return path, code


def arguments(command: str, path: object, tmp_path: Path) -> list[object]:
    return [command, path, *(["-o", tmp_path / "out.json"] if command == "convert" else [])]


def check_refused(done: Done, code: str, tmp_path: Path) -> None:
    assert done.code == 2
    assert f"[{code}]" in done.err
    assert "Traceback" not in done.err
    assert (done.out + done.err).replace("\n", "").isprintable()
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_in_text(run: Run, bad: tuple[Path, str], command: str, tmp_path: Path) -> None:
    path, code = bad
    done = run(*arguments(command, path, tmp_path))
    check_refused(done, code, tmp_path)
    assert done.out == ""
    assert "hint:" in done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_in_json(run: Run, bad: tuple[Path, str], command: str, tmp_path: Path) -> None:
    path, code = bad
    done = run(*arguments(command, path, tmp_path), "--format", "json")
    check_refused(done, code, tmp_path)
    assert code in done.codes
    assert all(item["message"] for item in done.json["diagnostics"])


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_from_standard_input(run: Run, bad: tuple[Path, str], command: str, tmp_path: Path) -> None:
    path, code = bad
    check_refused(run(*arguments(command, "-", tmp_path), stdin=path.read_bytes()), code, tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_and_a_missing_file(run: Run, command: str, tmp_path: Path) -> None:
    check_refused(run(*arguments(command, tmp_path, tmp_path)), "input.directory", tmp_path)
    check_refused(run(*arguments(command, tmp_path / "no\x1b[2J.json", tmp_path)), "input.not_found", tmp_path)


def test_sarif_of_what_cannot_be_read(run: Run, bad: tuple[Path, str]) -> None:
    path, code = bad
    done = run("verify", path, "--format", "sarif")
    assert done.code == 2
    (invocation,) = done.json["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert code in [note["descriptor"]["id"] for note in invocation["toolExecutionNotifications"]]


def test_one_bad_file_among_several_does_not_hide_the_others(run: Run, bad: tuple[Path, str], snapshot: Path) -> None:
    path, code = bad
    done = run("show", snapshot, path, "--format", "json")
    assert done.code == 2
    good, refused = done.json["files"]
    assert (good["file"], good["name"]) == (str(snapshot), "demo")
    assert refused["file"] == str(path)
    assert code in [item["code"] for item in refused["diagnostics"]]


def test_a_fault_in_a_text_is_told_by_line_and_column(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text("HloModule m\n\nENTRY e {\n  ROOT a = q17[2] parameter(0)\n}\n")
    done = run("show", path)
    assert f"dtir: {path}:4:12: " in done.err
    assert "line 4, column 12" in "\n".join(render_text.finding(Diagnostic("a.b", "no", ("line", "4", "column", "12"))))
