"""The script for GPUs, on devices played on the host: every section runs, is right, and is written down."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dtir.execute import load_backend
from tests.helpers.devices import played_runtime
from tests.helpers.shared import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_collectives", ROOT / "benchmarks" / "gpu_collectives.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_collectives"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def record(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("record") / "record.json"
    assert script.main(["--dry-run", "--json", str(path), "--commit", "abc"], played_runtime(2)) == 0
    return json.loads(path.read_text())


def test_a_dry_run_is_whole_and_says_what_it_is(script: ModuleType, record: dict[str, Any]) -> None:
    assert record["schema"] == "dtir.gpu-collectives"
    assert record["dry_run"] is True
    assert record["commit"] == "abc"
    assert record["wrong"] == 0
    assert "failed" not in record
    assert record["left_out"] == []
    assert record["device"]["count"] == 2
    seen = {(case["collective"], case["dtype"], case["ranks"]) for case in record["programs"]}
    assert seen == {(kind, dtype, k) for kind in script.KINDS for dtype in script.DTYPES for k in script.RANKS}
    assert {case["kernel"] for case in record["kernels"]} == {"own results", "in place", "unaligned"}
    assert {case["collective"] for case in record["devices"]} == set(script.KINDS)
    assert {case["collective"] for case in record["speeds"]} >= {"all_reduce", "all_to_all", "replicate", "permute"}
    assert record["graphs"][0]["steps"] == 64


def test_a_dry_run_holds_no_times(record: dict[str, Any]) -> None:
    assert not any("us" in case or "of_copy" in case for case in record["speeds"])
    assert "eager_us" not in record["graphs"][0]


def test_wrong_elements_and_missed_goals_are_counted(script: ModuleType) -> None:
    record = {
        "programs": [{"wrong": {"integers": 2, "ordered": 1}}],
        "speeds": [
            {
                "collective": "all_reduce",
                "dtype": "f32",
                "ranks": 8,
                "bytes_a_rank": 64 << 20,
                "of_copy": 0.5,
                "wrong": 4,
            },
            {
                "collective": "all_reduce",
                "dtype": "f32",
                "ranks": 8,
                "bytes_a_rank": 1 << 20,
                "of_copy": 0.1,
                "wrong": 0,
            },
        ],
    }
    assert script.wrong_in(record) == 7
    assert script.short_of_goal(record) == ["all_reduce 8 x 64 MiB f32: 50% of the copy"]


def test_a_wrong_result_is_the_status(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "differing", lambda found, wanted: 1)
    path = tmp_path / "record.json"
    assert script.main(["--dry-run", "--json", str(path), "--budget-s", "0"], played_runtime(1)) == 1
    assert json.loads(path.read_text())["left_out"]  # no case is begun when the time is over


@pytest.mark.skipif(load_backend("cupy").probe().ok, reason="there is a GPU here")
def test_without_a_gpu_it_says_so(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([]) == 2
    assert "no NVIDIA driver" in capsys.readouterr().err


def test_the_records_that_are_kept_are_of_gpus() -> None:
    folder = ROOT / "benchmarks" / "records"
    kept = list(folder.glob("*.json"))
    assert (folder / "README.md").exists()
    for path in kept:
        assert json.loads(path.read_text())["dry_run"] is False
    assert bool(kept) != ("**There is none yet.**" in (folder / "README.md").read_text())
