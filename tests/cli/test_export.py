"""``dtir export``: the suffix says what is written; what cannot be written is refused before the work."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from dtir_app.state import VIEWS

from dtir.cli.command import Failure
from dtir.cli.export import FORMATS, format_of, from_app
from dtir.cost.trace import SIDE
from dtir.execute import RunRecord, write_record
from dtir.execute.record import Columns, StepEntry
from tests.cli.test_run import FILES
from tests.helpers.cli import Run
from tests.helpers.shared import ROOT

PROFILE = ("--profile", "h100-nvlink-ib")


def test_the_longest_suffix_that_fits_is_taken() -> None:
    assert format_of("X.Trace.JSON").suffix == ".trace.json"
    assert format_of("a.b/x.trace.json.gz").suffix == ".trace.json.gz"


def test_an_unknown_suffix_lists_the_known_ones(run: Run, snapshot: Path, tmp_path: Path) -> None:
    done = run("export", str(snapshot), *PROFILE, "-o", str(tmp_path / "x.docx"))
    assert done.code == 2
    assert "x.docx" in done.err
    assert all(item.suffix in done.err for item in FORMATS)
    assert not (tmp_path / "x.docx").exists()


def test_standard_output_has_no_suffix(run: Run, snapshot: Path) -> None:
    done = run("export", str(snapshot), *PROFILE, "-o", "-")
    assert (done.code, done.out) == (2, "")
    assert "suffix" in done.err


def test_a_format_of_an_app_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str, name: str) -> None:
        raise ModuleNotFoundError(f"No module named 'panel' ({module}.{name})", name="panel")

    monkeypatch.setattr("dtir.cli.export._attribute", absent)
    with pytest.raises(Failure) as caught:
        from_app("exporting.writers", "make")()
    (found,) = caught.value.diagnostics
    assert found.code == "cli.missing_extra"
    assert found.hint is not None
    assert "dtir[app]" in found.hint


def test_a_part_of_our_own_that_is_missing_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError):
        from_app("no_such_module_here", "make")()


def test_the_planned_schedule_of_a_program(run: Run, snapshot: Path, tmp_path: Path) -> None:
    plain, packed = tmp_path / "x.trace.json", tmp_path / "x.trace.json.gz"
    done = run("export", str(snapshot), *PROFILE, "-o", str(plain), "--format", "json")
    assert (done.code, done.json) == (0, {"written": str(plain)})
    assert run("export", str(snapshot), *PROFILE, "-o", str(packed)).code == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    names = {
        item["args"]["name"]
        for item in json.loads(plain.read_text())["traceEvents"]
        if item["ph"] == "M" and item["name"] == "process_name"
    }
    assert names
    assert all(name.startswith("planned rank ") for name in names)


def test_a_program_has_planned_times_only_on_a_machine(run: Run, snapshot: Path, tmp_path: Path) -> None:
    done = run("export", str(snapshot), "-o", str(tmp_path / "x.trace.json"))
    assert done.code == 2
    assert "--profile" in done.err


def test_a_folder_that_is_not_there(run: Run, snapshot: Path, tmp_path: Path) -> None:
    done = run("export", str(snapshot), *PROFILE, "-o", str(tmp_path / "no" / "x.trace.json"))
    assert done.code == 2
    assert "[cli.output]" in done.err


# -- run records ---------------------------------------------------------------------------------------------------------------

MODULE = FILES / "scan_layers_dp2tp4_fwdbwd.spmd.hlo"


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def test_a_record_shows_what_was_measured_beside_what_was_planned(run: Run, tmp_path: Path) -> None:
    record, trace = tmp_path / "run.json", tmp_path / "x.trace.json"
    assert run("run", MODULE, *PROFILE, "-o", record, "--reps", 2, "--warmup", 0).code == 0
    assert run("export", record, "-o", trace).code == 0
    found = events(trace)
    names = {item["pid"]: item["args"]["name"] for item in found if item["name"] == "process_name"}
    assert names == {
        **{rank: f"measured rank {rank}" for rank in range(8)},
        **{SIDE + rank: f"planned rank {rank}" for rank in range(8)},
    }
    slices = [item for item in found if item["ph"] == "X"]
    assert all((item["pid"] >= SIDE) is item["args"]["planned"] for item in slices)
    assert all(item["tid"] in (0, 1) and item["dur"] >= 0 and item["ts"] >= 0 for item in slices)
    transfers = [item for item in slices if item["cat"] == "transfer"]
    assert transfers
    for item in transfers:
        assert item["tid"] == 1
        assert item["args"]["task"]
        assert item["pid"] % SIDE in item["args"]["group"]
        assert int(item["args"]["bytes"]) > 0
    assert {item["args"]["repetition"] for item in transfers if item["pid"] < SIDE} == {0, 1}
    begun = [item["id"] for item in found if item["ph"] == "s"]
    ended = [item["id"] for item in found if item["ph"] == "f"]
    assert sorted(begun) == sorted(ended)
    assert len(set(begun)) == len(begun)
    assert begun


def test_a_record_without_a_plan_has_one_side(run: Run, tmp_path: Path) -> None:
    record, trace = tmp_path / "run.json", tmp_path / "x.trace.json"
    assert run("run", MODULE, "-o", record).code == 0
    done = run("export", record, "-o", trace, "--ranks", 3)
    assert done.code == 0
    assert "5 measured ranks are left out" in done.err
    assert {item["pid"] for item in events(trace)} == {0, 1, 2}
    assert json.loads(trace.read_text())["otherData"]["measured_ranks_left_out"] == 5


def rows_of(*rows: tuple[int, int, int], groups: tuple[tuple[int, ...], ...]) -> RunRecord:
    """A record of one collective: (rank, start, end) in microseconds."""
    columns = Columns()
    for rank, start, end in rows:
        columns.add(0, rank, 0, 1000 * start, 1000 * end)
    ranks = tuple(sorted(rank for group in groups for rank in group))
    return RunRecord(
        {"name": "p", "digest": "0" * 40, "ranks": len(ranks)}, {"name": "mpi"}, {}, {}, {},
        (StepEntry(0, "node:0", "ar", "", "exchange", "core.all_reduce", 64, 384, ranks=0, groups=0),),
        columns, {"elapsed_ns": [5]}, rank_sets=(ranks,), group_sets=(groups,),
    )  # fmt: skip


def test_a_wait_lasts_until_the_last_member_comes(run: Run, tmp_path: Path) -> None:
    """Members of another group are not waited for; who is done before the last comes has not waited for it."""
    record, trace = tmp_path / "run.json", tmp_path / "x.trace.json"
    write_record(record, rows_of((0, 10, 40), (1, 30, 45), (2, 20, 25), (3, 50, 60), groups=((0, 1), (2, 3))))
    assert run("export", record, "-o", trace).code == 0
    found = {(item["name"], item["pid"]): (item["ts"], item["dur"]) for item in events(trace) if item["ph"] == "X"}
    assert found == {
        ("wait for ar", 0): (0, 20),
        ("ar", 0): (20, 10),
        ("ar", 1): (20, 15),
        ("ar", 2): (10, 5),
        ("ar", 3): (40, 10),
    }
    ties = [(item["ph"], item["pid"]) for item in events(trace) if item["ph"] in "sf"]
    assert ties == [("s", 0), ("f", 1), ("s", 2), ("f", 3)]


def test_a_record_has_its_own_plan(run: Run, tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    assert run("run", MODULE, "-o", record).code == 0
    done = run("export", record, *PROFILE, "-o", tmp_path / "x.trace.json")
    assert done.code == 2
    assert "dtir run FILE --profile" in done.err


@pytest.mark.parametrize("damage", [b"}", b'{"schema":"dtir.run-record","version":"1.0.0"}'])
def test_a_damaged_record(run: Run, tmp_path: Path, damage: bytes) -> None:
    record, trace = tmp_path / "run.json", tmp_path / "x.trace.json"
    assert run("run", MODULE, "-o", record).code == 0
    record.write_bytes(damage if damage.startswith(b"{") else record.read_bytes()[:-20] + damage)
    done = run("export", record, "-o", trace)
    assert done.code == 2
    assert "[run.record]" in done.err
    assert not trace.exists()


@pytest.mark.parametrize("command", ["show", "verify", "run", "cost"])
def test_a_record_is_no_program_and_is_told_so(run: Run, tmp_path: Path, command: str) -> None:
    record = tmp_path / "run.json"
    assert run("run", MODULE, "-o", record).code == 0
    done = run(command, record)
    assert done.code == 2
    assert "a run record: it says how a program ran" in done.err
    assert "dtir export" in done.err


FAULTS = ROOT / "assets" / "programs" / "parallel_mlp_faults.dtir.yaml"


def test_a_page_and_a_picture_of_a_program(run: Run, tmp_path: Path) -> None:
    page, picture = tmp_path / "x.html", tmp_path / "x.svg"
    assert run("export", FAULTS, "-o", page).code == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run("export", FAULTS, "-o", picture, "--view", "mesh", "--select", "sum_tp", "--dark").code == 0
    root = ET.parse(picture).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "parallel_mlp_with_faults · dp2 × tp4 · Mesh · sum_tp"


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_can_be_drawn(run: Run, tmp_path: Path, view: str) -> None:
    target = tmp_path / "x.svg"
    assert run("export", FAULTS, "-o", target, "--view", view, "--size", "900x600").code == 0
    root = ET.parse(target).getroot()
    assert (root.get("width"), root.get("height")) == ("900", "600")
    assert len(list(root.iter())) > 3
    again = tmp_path / "y.svg"
    assert run("export", FAULTS, "-o", again, "--view", view, "--size", "900x600").code == 0
    assert again.read_bytes() == target.read_bytes()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--view", "nowhere"), "there is no such view"),
        (("--select", "nobody"), "there is no such task or tensor"),
        (("--select", "node:"), "are meant"),
        (("--size", "1x1"), "is no size"),
        (("--size", "wide"), "is no size"),
    ],
)
def test_a_picture_of_what_is_not_there(run: Run, tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    done = run("export", FAULTS, "-o", tmp_path / "x.svg", *argv)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "x.svg").exists()


def test_a_task_is_selected_by_the_beginning_of_its_id(run: Run, tmp_path: Path) -> None:
    shown = run("show", FAULTS, "--format", "json").json
    name = shown["collectives"][0]["id"]
    assert run("export", FAULTS, "-o", tmp_path / "x.svg", "--select", name.split(":")[-1][:12]).code == 0


def test_a_png_without_a_browser_says_what_is_missing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DTIR_CHROMIUM", raising=False)
    done = run("export", FAULTS, "-o", tmp_path / "x.png")
    assert done.code == 2
    assert "cli.missing_browser" in done.err
    assert "DTIR_CHROMIUM" in done.err
    monkeypatch.setenv("DTIR_CHROMIUM", str(tmp_path / "no"))
    assert "is no file" in run("export", FAULTS, "-o", tmp_path / "x.png").err


def test_a_browser_that_draws_nothing_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "chromium"
    fake.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("DTIR_CHROMIUM", str(fake))
    done = run("export", FAULTS, "-o", tmp_path / "x.png")
    assert done.code == 2
    assert "broken" in done.err
    assert not (tmp_path / "x.png").exists()


def test_findings_for_code_review(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.sarif"
    assert run("export", FAULTS, "-o", target).code == 0
    log = json.loads(target.read_text(encoding="utf-8"))
    assert log["version"] == "2.1.0"
    assert len(log["runs"][0]["results"]) >= 3


@pytest.mark.parametrize("suffix", [".html", ".svg", ".sarif"])
def test_what_is_no_program_is_refused_as_everywhere(run: Run, tmp_path: Path, suffix: str) -> None:
    broken = tmp_path / "broken.hlo"
    broken.write_text("nothing that is known")
    done = run("export", broken, "-o", tmp_path / f"x{suffix}", "--format", "json")
    assert done.code == 2
    assert done.codes == ["input.unknown_format"]
    assert not (tmp_path / f"x{suffix}").exists()
