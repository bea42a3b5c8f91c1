"""``dtir cost`` as a newcomer meets it: text, JSON, presets, profile files, and everything that can be typed wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtir.cost.presets import load_preset, preset_names
from dtir.cost.profile_json import profile_json
from dtir.presets.pipeline import PipelineKind, pipeline_program
from tests.helpers.cli import Run
from tests.helpers.shared import shared_params

KEYS = {
    "planned", "program", "profile", "makespan_s", "complete", "bounds", "exposed_communication_s", "bubble_fraction",
    "ranks", "tasks", "collectives", "critical_path", "memory", "bytes_by_axis", "bytes_by_level", "notes",
}  # fmt: skip


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.json"
    program = pipeline_program(PipelineKind.ONE_F_ONE_B, stages=4, microbatches=8)
    path.write_text(program.to_json(), encoding="utf-8")
    return path


def test_the_answer_comes_first_and_is_called_planned(run: Run, snapshot: Path) -> None:
    done = run("cost", snapshot, "--profile", "h100-nvlink-ib", "--seconds", "core.op=1e-3")
    assert done.code == 0
    head = done.out.splitlines()[:6]
    assert "planned, not measured" in head[0]
    assert "h100-nvlink-ib (published" in head[2]
    assert "makespan" in head[3]
    assert "2.000 ms" in head[3]  # both tasks are core.op
    for title in ("ranks", "critical path", "communication", "local work", "bytes by mesh axis", "memory"):
        assert title in done.out


def test_what_is_not_known_is_said_and_never_zero(run: Run, snapshot: Path) -> None:
    done = run("cost", snapshot, "--profile", "h100-nvlink-ib")
    assert "at least" in done.out
    assert "no known time, counted as nothing: operation core.op" in done.out
    result = run("cost", snapshot, "--profile", "h100-nvlink-ib", "--format", "json").json
    assert result["complete"] is False
    (task,) = [item for item in result["tasks"] if item["name"] == "mul.0"]
    assert (task["seconds"], task["reason"]) == (None, "operation core.op")


def test_json_has_the_documented_keys(run: Run, snapshot: Path) -> None:
    result = run("cost", snapshot, "--format", "json", "--seconds", "mul.0=2").json
    assert set(result) == KEYS
    assert result["planned"] is True
    assert result["profile"]["id"] == "h100-nvlink-ib"
    assert "no --profile was given" in result["notes"][0]
    (entry,) = result["ranks"]
    assert (entry["count"], entry["ranks"], entry["compute_s"]) == (8, list(range(8)), 2)
    (collective,) = result["collectives"]
    assert (collective["kind"], collective["axes"], collective["group_size"]) == ("all_reduce", ["tp"], 4)
    assert collective["model"] == "NCCL tuning model"
    assert result["makespan_s"] == 2 + collective["seconds"]
    assert result["exposed_communication_s"] == pytest.approx(collective["seconds"])
    assert [step["name"] for step in result["critical_path"]] == ["mul.0", "sum.1"]
    assert result["bytes_by_axis"]["tp"]["total_bytes"] == 2 * 3 * 128 * 2


def test_a_pipeline_says_its_bubble(run: Run, pipeline: Path) -> None:
    times = ["--seconds", "forward=1", "--seconds", "backward=2", "--seconds", "transfer=0"]
    result = run("cost", pipeline, *times, "--format", "json").json
    assert result["pipeline"] == {
        "stages": 4,
        "microbatches": 8,
        "chunks": 1,
        "bubble_over_ideal": pytest.approx(3 / 8),
        "in_flight": [4, 3, 2, 1],
    }
    assert result["bubble_fraction"] == pytest.approx(3 / 11)
    text = run("cost", pipeline, *times).out
    assert "4 stages, 8 microbatches; 37.5 % over the ideal time; live at most 4, 3, 2, 1" in text


def test_profiles_are_listed_with_their_sources(run: Run) -> None:
    text = run("cost", "--list-profiles")
    assert text.code == 0
    for name in preset_names():
        assert name in text.out
    rows = run("cost", "--list-profiles", "--format", "json").json["profiles"]
    assert [row["id"] for row in rows] == list(preset_names())
    assert all(row["source"] and row["date"] for row in rows)


def test_a_profile_is_read_from_a_file(run: Run, snapshot: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(profile_json(load_preset("openmpi-shm-2core")), encoding="utf-8")
    result = run("cost", snapshot, "--profile", path, "--format", "json").json
    assert result["profile"]["standing"] == "measured"
    assert result["collectives"][0]["model"] == "measured curve of all_reduce"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], "cli.usage", "no FILE"),
        (["FILE", "--profile", "h100"], "profile.unknown", "h100-nvlink-ib"),
        (["FILE", "--profile", "FILE"], "profile.json", "dtir.machine-profile"),
        (["FILE", "--seconds", "a"], "cli.usage", "NAME=NUMBER"),
        (["FILE", "--seconds", "a=fast"], "cli.usage", "a=fast"),
        (["FILE", "--seconds", "a=nan"], "cli.usage", "a=nan"),
        (["FILE", "--seconds", "a=-1"], "cli.usage", "negative"),
        (["FILE", "--bind", "=4"], "cli.usage", "=4"),
        (["FILE", "--trips", "-1"], "cli.usage", "negative"),
        (["absent.hlo"], "input.unreadable", "absent.hlo"),
    ],
)
def test_what_is_typed_wrong_is_said(run: Run, snapshot: Path, arguments: list[str], code: str, said: str) -> None:
    given = [str(snapshot) if item == "FILE" else item for item in arguments]
    done = run("cost", *given, "--format", "json")
    assert done.code == 2
    assert done.out
    assert done.codes == [code] or code == "input.unreadable"
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_broken_profile_is_reported_whole(run: Run, snapshot: Path, tmp_path: Path) -> None:
    tree = json.loads(profile_json(load_preset("tpu-v5p-torus")))
    tree["levels"][0]["alpha_s"] = -1
    tree["speed"] = "fast"
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    done = run("cost", snapshot, "--profile", path, "--format", "json")
    assert (done.code, done.codes) == (2, ["profile.value", "profile.field"])


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/gpu_aot/*.hlo"))
@pytest.mark.parametrize("profile", ["h100-nvlink-ib", "tpu-v5p-torus"])
def test_real_gpu_modules_are_planned_whole(run: Run, path: Path, profile: str) -> None:
    done = run("cost", path, "--profile", profile, "--format", "json")
    assert done.code == 0, done.err
    result = done.json
    assert result["complete"] is True
    assert result["makespan_s"] > 0
    assert sum(entry["count"] for entry in result["ranks"]) == result["program"]["ranks"]
    assert max(result["bounds"]["longest_path_s"], result["bounds"]["busiest_compute_s"]) <= result["makespan_s"]
    assert 0 <= result["bubble_fraction"] < 1
    assert result["memory"]["peak_bytes"] >= result["memory"]["input_bytes"]
    assert all(item["seconds"] is not None for item in result["collectives"])


@pytest.mark.parametrize("path", shared_params("upstream/0*.json"))
def test_upstream_programs_are_planned_by_the_work_that_they_state(run: Run, path: Path) -> None:
    done = run("cost", path, "--profile", "a100-nvlink-ib", "--format", "json")
    assert done.code == 0, done.err
    assert done.json["makespan_s"] > 0


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/cpu8/*.spmd.hlo"))
def test_real_cpu_modules_have_text(run: Run, path: Path) -> None:
    done = run("cost", path, "--profile", "openmpi-shm-2core")
    assert done.code == 0, done.err
    assert "makespan" in done.out
