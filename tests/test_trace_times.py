from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtir.execute.record import RunRecord
from dtir.importers import load_bytes, open_set
from dtir.trace_times import trace_times
from tests.helpers.cli import runner
from tests.helpers.traces import entry, recorder

TIMED = [
    entry(
        "nccl:all_reduce",
        1,
        time_created_ns=1_000 + rank,
        time_discovered_started_ns=1_500 + rank,
        time_discovered_completed_ns=2_000 + rank,
    )
    for rank in range(2)
]
FILES = [(f"job.rank{rank}.json", recorder(item)) for rank, item in enumerate(TIMED)]


def test_times_become_a_record_whose_steps_are_the_tasks() -> None:
    found = open_set(FILES)
    assert found.program is not None
    record = trace_times(found)
    assert record is not None
    again = RunRecord.from_json(record.to_json())
    assert again.program["digest"] == found.program.digest
    assert [entry.name for entry in again.steps] == ["nccl:all_reduce"]
    columns = again.records
    assert (columns.step, columns.rank) == ([0, 0], [0, 1])
    assert (columns.start_ns, columns.end_ns) == ([1_500, 1_501], [2_000, 2_001])
    assert again.totals["elapsed_ns"] == [501]


def test_the_program_itself_names_no_time() -> None:
    found = open_set(FILES)
    assert found.program is not None
    assert "1500" not in found.program.to_json()


def test_a_source_without_times_has_no_record() -> None:
    assert trace_times(open_set([("job.rank0.json", recorder(entry("nccl:all_reduce", 1)))])) is None


def test_durations_without_a_beginning_are_laid_end_to_end() -> None:
    nodes = [{"Id": number, "Name": "mm", "NodeType": 4, "runtime": number} for number in (1, 2, 3)]
    found = load_bytes(json.dumps({"workload_graph": nodes}).encode(), name="x.0.json")
    record = trace_times(found)
    assert record is not None
    assert list(zip(record.local_records.start_ns, record.local_records.end_ns, strict=True)) == [
        (0, 1_000),
        (1_000, 3_000),
        (3_000, 6_000),
    ]
    assert "trace.durations_only" in [item["code"] for item in record.findings]


def test_convert_writes_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner(capsys, monkeypatch)
    paths = [tmp_path / name for name, _ in FILES]
    for path, (_, data) in zip(paths, FILES, strict=True):
        path.write_bytes(data)
    done = run("convert", *paths, "-o", tmp_path / "p.json", "--times", tmp_path / "run.json", "--format", "json")
    assert done.code == 0
    assert done.json["times"] == str(tmp_path / "run.json")
    record = RunRecord.from_json((tmp_path / "run.json").read_text())
    assert record.program["digest"] == done.json["digest"]
    assert len(json.loads((tmp_path / "p.json").read_text())["payload"]["issue"]) == 2
    shown = run("show", tmp_path, "--format", "json")
    assert shown.json["mesh"]["ranks"] == 2


def test_times_that_are_not_there_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner(capsys, monkeypatch)
    path = tmp_path / "job.rank0.json"
    path.write_bytes(recorder(entry("nccl:all_reduce", 1)))
    done = run("convert", path, "-o", tmp_path / "p.json", "--times", tmp_path / "run.json")
    assert done.code == 2
    assert "no times" in done.err
