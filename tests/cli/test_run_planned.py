"""``dtir run --profile``: planned times beside measured ones, in the report and in the record, never one for the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtir.execute import read_record
from tests.cli.test_run import FILES, KEYS, RIGHT
from tests.helpers.cli import Done, Run

MODULE = FILES / "scan_layers_dp2tp4_fwdbwd.spmd.hlo"
PRESET = "h100-nvlink-ib"


def profile(path: Path, seconds: float, **host: Any) -> Path:
    """A machine on which every message takes the same time."""
    curves = [
        {"op": op, "group_size": 2, "segments": [{"from_bytes": 0, "alpha_s": seconds, "beta_s_per_byte": 0}]}
        for op in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "sendrecv")
    ]
    whole = {
        "schema": "dtir.machine-profile", "version": "1.0.0", "id": "even", "summary": "every message alike",
        "source": {"standing": "measured", "text": "by hand", "date": "2026-01-01"}, "host": host, "curves": curves,
    }  # fmt: skip
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def codes(done: Done) -> list[str]:
    return [item["code"] for item in done.json["findings"]]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "right.dtir.yaml"
    path.write_text(RIGHT, encoding="utf-8")
    return path


@pytest.mark.parametrize("source", ["hlo", "yaml"])
def test_every_collective_and_task_has_its_plan(run: Run, program: Path, source: str) -> None:
    done = run("run", MODULE if source == "hlo" else program, "--profile", PRESET, "--format", "json")
    assert done.code == 0
    found = done.json
    assert list(found) == KEYS
    assert found["collectives"]
    for row in (
        *found["collectives"],
        *(row for row in found["tasks"] if row["kind"] == "local" and row["executions"]),
    ):
        assert row["samples"] >= 5
        assert 0 < row["min_us"] <= row["p50_us"] <= row["p95_us"]
        assert row["time_us"] == row["p50_us"]
        assert row["noise_us"] >= 0
        assert row["planned_model"]
        if row["planned_us"]:
            assert row["error_percent"] == pytest.approx(100 * (row["time_us"] / row["planned_us"] - 1))
    totals = found["totals"]
    assert totals["repetitions"] == 5
    assert totals["planned_us"] > 0
    assert totals["planned_with"]["id"] == PRESET
    assert totals["prediction"]["collectives"] == len(found["collectives"])
    assert codes(done).count("run.profile_elsewhere") == 1, "a published profile is not of this machine"


def test_the_plan_is_that_of_dtir_cost(run: Run) -> None:
    ran = run("run", MODULE, "--profile", PRESET, "--format", "json").json
    planned = run("cost", MODULE, "--profile", PRESET, "--format", "json").json
    by_name = {item["name"]: item for item in planned["collectives"]}
    assert by_name
    for row in ran["collectives"]:
        assert row["planned_us"] == pytest.approx(1e6 * by_name[row["name"]]["seconds"])
    assert ran["totals"]["planned_us"] == pytest.approx(1e6 * planned["makespan_s"])


def test_without_a_profile_nothing_is_planned(run: Run, program: Path) -> None:
    found = run("run", program, "--format", "json").json
    assert {row["planned_us"] for row in (*found["tasks"], *found["collectives"])} == {None}
    assert found["totals"]["planned_us"] is None
    assert found["totals"]["prediction"] is None
    assert found["totals"]["repetitions"] == 1


@pytest.mark.parametrize(("seconds", "slow"), [(1e-12, True), (1.0, False)])
def test_slower_than_planned(run: Run, program: Path, tmp_path: Path, seconds: float, slow: bool) -> None:
    path = profile(tmp_path / "p.json", seconds)
    done = run("run", program, "--profile", path, "--format", "json", "--reps", 7)
    assert done.code == 0, "a warning is no error"
    named = [item for item in done.json["findings"] if item["path"][0] == "collectives"]
    assert [item["code"] for item in named] == (["run.slower_than_planned"] if slow else [])
    (row,) = done.json["collectives"]
    assert row["planned_us"] == pytest.approx(1e6 * seconds)
    assert row["samples"] == 7


def test_one_execution_has_no_noise_and_no_verdict(run: Run, program: Path, tmp_path: Path) -> None:
    path = profile(tmp_path / "p.json", 1e-12)
    done = run("run", program, "--profile", path, "--format", "json", "--reps", 1, "--warmup", 0)
    assert "run.slower_than_planned" not in codes(done)
    assert done.json["collectives"][0]["noise_us"] is None


def test_a_profile_of_this_library_is_at_home(run: Run, program: Path, tmp_path: Path) -> None:
    import numpy as np

    path = profile(tmp_path / "p.json", 1.0, library=f"numpy {np.__version__}")
    assert "run.profile_elsewhere" not in codes(run("run", program, "--profile", path, "--format", "json"))


def test_groups_that_one_process_does_in_turn_are_told(run: Run) -> None:
    found = run("run", MODULE, "--profile", PRESET, "--format", "json").json
    record = {row["name"]: row for row in found["collectives"]}
    assert all(row["in_turn"] == row["groups"] for row in record.values()), "numpy has all ranks in one process"


def test_text_keeps_planned_and_measured_apart(run: Run) -> None:
    done = run("run", MODULE, "--profile", PRESET)
    assert done.code == 0
    assert f"planned on {PRESET} (published" in done.out
    for column in ("planned us", "err %", "planned tx", "measured tx", "wait us", "noise us", "min us", "p95 us"):
        assert column in done.out
    assert "local step" in done.out


def test_the_record_holds_the_plan(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    assert run("run", MODULE, "--profile", PRESET, "-o", path).code == 0
    record = read_record(path)
    assert record.profile is not None
    assert record.profile["id"] == PRESET
    assert len(record.profile["digest"]) == 40
    assert record.planned is not None
    assert len(record.planned.step) > 0
    assert record.totals["local_left_out"] == 0
    named = {record.step(index).kind for index in record.local_records.step}
    assert {"local", "loop"} <= named
    assert {record.step(index).kind for index in record.records.step} <= {"exchange", "move"}
    assert all(entry.planned_us is not None for entry in record.steps if entry.kind == "exchange")


@pytest.mark.parametrize(
    ("given", "code"), [("h100", "profile.unknown"), ("no/such.json", "profile.unknown"), ("bad.json", "profile.json")]
)
def test_a_profile_that_is_none(run: Run, program: Path, tmp_path: Path, given: str, code: str) -> None:
    (tmp_path / "bad.json").write_text("{")
    name = tmp_path / given if given == "bad.json" else given
    done = run("run", program, "--profile", name, "--format", "json")
    assert (done.code, done.codes) == (2, [code])


def test_interrupted_runs_keep_their_plan(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dtir.execute import Session

    path, execute = tmp_path / "run.json", Session.execute

    def stop(self: Session, step: Any) -> None:
        execute(self, step)
        if step.name == "all-reduce":
            raise KeyboardInterrupt

    monkeypatch.setattr(Session, "execute", stop)
    done = run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "-o", path, "--profile", PRESET, "--warmup", 0)
    assert done.code == 130
    record = read_record(path)
    assert not record.complete
    assert record.profile is not None
    assert len(record.records) == 1


def test_a_failed_run_keeps_what_was_done(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dtir.execute import ExecutionError, Session

    path, execute = tmp_path / "run.json", Session.execute

    def fail(self: Session, step: Any) -> None:
        execute(self, step)
        if step.name == "all-reduce":
            raise ExecutionError("out of luck", step)

    monkeypatch.setattr(Session, "execute", fail)
    done = run(
        "run", FILES / "mlp_tp8_fwd.spmd.hlo", "-o", path, "--profile", PRESET, "--warmup", 0, "--format", "json"
    )
    assert (done.code, codes(done)) == (1, ["run.failed"])
    record = read_record(path)
    assert not record.complete
    assert len(record.records) == 1
    assert [item["code"] for item in record.findings] == ["run.failed"]


def test_local_steps_that_are_left_out_have_no_time(run: Run) -> None:
    """Their results are filled by a rule: how long that takes says nothing about the steps."""
    done = run("run", MODULE, "--profile", PRESET, "--skip-local", "--format", "json", "--reps", 2)
    local = [row for row in done.json["tasks"] if row["kind"] == "local"]
    assert {row["time_us"] for row in local} == {None}
    assert all(item["path"][0] != "tasks" for item in done.json["findings"])
    assert all(row["time_us"] is not None for row in done.json["collectives"])
