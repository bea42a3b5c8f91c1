"""``dtir export``: the suffix says what is written; what cannot be written is refused before the work."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dtir.cli.command import Failure
from dtir.cli.export import FORMATS, format_of, from_app
from tests.helpers.cli import Run

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


def test_a_format_of_an_app_that_is_not_installed_names_the_extra() -> None:
    with pytest.raises(Failure) as caught:
        from_app("no_such_module_here", "make")()
    (found,) = caught.value.diagnostics
    assert found.code == "cli.missing_extra"
    assert found.hint is not None
    assert "dtir[app]" in found.hint


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
