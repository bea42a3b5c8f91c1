"""``dtir diff`` through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtir.cli import main

PROGRAM = """\
schema: dtir-program/1
name: tiny
mesh: {axes: [[tp, 4]]}
values:
- {id: x, shape: [16, 8], dims: [[tp], []], role: input}
- {id: y, shape: [16, 8], dims: [[], []]}
tasks:
- {id: gather, kind: collective, coll: all_gather, in: [x], out: [y], axes: [tp], dim: 0}
inputs: [x]
outputs: [y]
"""


def files(folder: Path, second: str) -> list[str]:
    first, other = folder / "a.dtir.yaml", folder / "b.dtir.yaml"
    first.write_text(PROGRAM)
    other.write_text(second)
    return [str(first), str(other)]


def test_equal_programs_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files(tmp_path, PROGRAM.replace("id: gather", "id: other"))]) == 0
    assert capsys.readouterr().out.startswith("equal: 1 tasks matched")


def test_the_keys_of_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = PROGRAM.replace("16", "32")
    assert main(["diff", *files(tmp_path, other), "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert list(result)[:4] == ["added", "removed", "changed", "bytes_delta"]
    assert result["bytes_delta"] == 16 * 8 * 4
    assert {(item["name"], item["field"]) for item in result["changed"]} == {
        ("x", "shape"),
        ("y", "shape"),
        ("gather", "message_bytes"),
    }
    assert (result["a"]["name"], result["equal"]) == ("tiny", False)


def test_text_names_what_differs_and_cuts_nothing_silently(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = PROGRAM.replace("tasks:\n", "tasks:\n" + "".join(f"- {{id: t{i}, kind: control}}\n" for i in range(60)))
    assert main(["diff", *files(tmp_path, many)]) == 1
    out = capsys.readouterr().out
    assert "... 20 more lines; --all shows them" in out
    assert main(["diff", *files(tmp_path, many), "--all"]) == 1
    assert "more lines" not in capsys.readouterr().out


def test_what_cannot_be_read_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = files(tmp_path, PROGRAM)
    assert main(["diff", first, str(tmp_path / "absent.json"), "--format", "json"]) == 2
    result = json.loads(capsys.readouterr().out)
    assert [item["code"] for item in result["diagnostics"]] == ["input.not_found"]
    assert main(["diff", "-", "-"]) == 2


def test_a_program_half_understood_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = files(tmp_path, PROGRAM.replace("in: [x]", "in: [nothing]"))
    assert main(["diff", *names]) == 2
    assert "nothing" in capsys.readouterr().err
