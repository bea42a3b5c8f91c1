"""Traces of several ranks on the command line: one program, named by its files or by their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli import Run, runner
from tests.helpers.traces import TRACES, entry, kept, recorder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("desync_deadlock", "deadlock.cycle"),
        ("p2p_unmatched", "p2p.unmatched"),
        ("pp4_1f1b_chain", "deadlock.buffer_dependent"),
    ],
)
def test_files_and_their_folder_are_judged_alike(run: Run, name: str, code: str) -> None:
    by_file = run("verify", *kept(name), "--format", "json")
    by_folder = run("verify", TRACES / name, "--format", "json")
    assert (by_file.code, by_folder.code) == (1, 1)
    assert [item["code"] for item in by_file.json["diagnostics"] if item["severity"] == "error"] == [code]
    assert by_file.json == by_folder.json


def test_an_order_of_communicators_that_differs_is_a_remark(run: Run) -> None:
    done = run("verify", *kept("deadlock_pg_order"), "--format", "json")
    assert done.code == 0
    assert "order.mismatch" in done.codes


def test_one_file_is_shown_alone(run: Run) -> None:
    done = run("show", kept("pp4_1f1b_chain")[1], "--format", "json")
    assert done.code == 0
    assert done.json["mesh"]["ranks"] == 4
    assert done.json["tasks"]["by_kind"] == {"point-to-point": 16, "local-compute": 8, "collective": 1}


def test_traces_beside_other_programs(run: Run, tmp_path: Path) -> None:
    hlo = tmp_path / "e.hlo"
    hlo.write_text("ENTRY e {\n b = f32[2] parameter(0)\n ROOT a = f32[2] negate(b)\n}\n")
    files = kept("p2p_unmatched")
    done = run("show", files[0], hlo, *files[1:], "--format", "json")
    assert [item["file"] for item in done.json["files"]] == [str(files[0]), str(hlo)]
    assert [item["format"] for item in done.json["files"]] == ["chakra", "hlo"]


def test_a_folder_without_traces_is_still_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    done = run("show", tmp_path, "--format", "json")
    assert done.code == 2
    assert done.codes == ["input.directory"]


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_shown(run: Run, tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"j.rank{rank}.json").write_bytes(recorder(entry("nccl:all_reduce", 1), ranks=range(3)))
    (tmp_path / "j.rank2.json").write_bytes(recorder(entry("nccl:all_reduce", 1), ranks=range(3))[:-40])
    done = run("show", *sorted(tmp_path.iterdir()), "--format", "json")
    assert done.code == 1
    assert {"trace.json", "trace.rank_missing"} <= {item["code"] for item in done.json["warnings"]}
    assert len(done.json["collectives"]) == 1
