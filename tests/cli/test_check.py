"""``dtir check`` through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dtir.cli import main

PROGRAM = """\
HloModule m, num_partitions=2

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0), sharding={replicated}, metadata={op_name="x"}
  ROOT %t = f32[4] tanh(%x), metadata={op_name="jit(f)/tanh" source_file="f.py" source_line=3}
}
"""


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    for number, text in enumerate([PROGRAM, PROGRAM.replace("%t", "%u"), PROGRAM.replace("tanh(", "sine(")]):
        (folder / f"{number:04}.txt").write_text(text)
    return folder


def test_exit_codes(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = (str(dumps / f"{number:04}.txt") for number in range(3))
    assert main(["check", first, second]) == 0
    assert main(["check", first, third]) == 1
    other = dumps.parent / "other.txt"
    other.write_text(PROGRAM.replace("f32[4]", "f32[5,2]"))
    assert main(["check", first, str(other)]) == 2
    assert "does not take the inputs" in capsys.readouterr().out


def test_a_folder_is_a_sequence_and_the_guilty_one_is_named(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(dumps), "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "different"
    assert (result["guilty"], result["last_equal"]) == (str(dumps / "0002.txt"), str(dumps / "0001.txt"))
    first = result["first_difference"]
    assert (first["before"]["name"], first["after"]["name"]) == ("u", "t")
    assert (first["after"]["operation"], first["after"]["source"]) == ("hlo.sine", "f.py:3")
    assert [item["code"] for item in result["diagnostics"]] == ["check.different"]
    assert main(["check", str(dumps)]) == 1
    assert "first wrong: 0002.txt (right until 0001.txt)" in capsys.readouterr().out


def test_inputs_of_an_archive_are_used(dumps: Path, tmp_path: Path) -> None:
    """tanh and sine agree at 0."""
    np.savez(tmp_path / "in.npz", in0=np.zeros(4, np.float32))
    first, third = str(dumps / "0000.txt"), str(dumps / "0002.txt")
    assert main(["check", first, third, "--inputs", str(tmp_path / "in.npz")]) == 0


@pytest.mark.parametrize(
    "arguments",
    [["{0}"], ["{0}", "absent.hlo"], ["{0}", "{0}", "--inputs", "absent.npz"], ["{0}", "{0}", "--seed", "-1"]],
)
def test_what_cannot_be_done_exits_2(dumps: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *(item.format(dumps / "0000.txt") for item in arguments)]) == 2
    assert capsys.readouterr().err.startswith("dtir: ")


def test_a_folder_without_files_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["check", str(tmp_path / "empty")]) == 2
    assert "folder without files" in capsys.readouterr().err
