"""``dtir calibrate``: writes a profile that ``dtir cost`` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli import Run


def test_a_profile_is_measured_and_used(run: Run, snapshot: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    done = run("calibrate", "-o", path, "-n", "2", "--max-bytes", "2048", "--reps", "1", "--format", "json")
    assert done.code == 0, done.err
    assert done.json["written"] == str(path)
    assert {row["group_size"] for row in done.json["curves"]} == {2}
    assert done.json["held_out"]["sizes"] > 0
    assert 0 < done.json["rates"]["start_s"] < 1, "what a step costs that computes nothing"
    planned = run("cost", snapshot, "--profile", path, "--format", "json").json
    assert planned["profile"]["standing"] == "measured"
    assert "reference" in planned["profile"]["source"]
    (collective,) = planned["collectives"]
    assert collective["model"] == "measured curve of all_reduce"
    assert collective["notes"] == ["extrapolated from groups of 2 ranks to 4"]


def test_the_text_shows_every_curve(run: Run, tmp_path: Path) -> None:
    done = run("calibrate", "-o", tmp_path / "mine.json", "-n", "3", "--max-bytes", "1024", "--reps", "1")
    assert done.code == 0, done.err
    rows = [line.split()[:2] for line in done.out.splitlines()[1:12]]
    assert ["all_reduce", "3"] in rows
    assert ["sendrecv", "2"] in rows
    assert "held out" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "-"], "standard output"),
        (["-o", "absent/mine.json"], "no folder"),
        (["-o", "mine.json", "-n", "1"], "at least 2 ranks"),
        (["-o", "mine.json", "--max-bytes", "16"], "leaves 2 sizes"),
        (["-o", "mine.json", "--reps", "0"], "--reps 0"),
        (["-o", "mine.json", "--backend", "nmupy"], "did you mean numpy"),
        ([], "-o"),
    ],
)
def test_what_cannot_be_measured_is_said_before_it_starts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("calibrate", *arguments)
    assert done.code == 2
    assert said in done.err
    assert not list(tmp_path.iterdir())
