"""``dtir show --why``: reasons of communication as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.cli import Run
from tests.helpers.shared import ROOT

TRAIN = str(ROOT / "assets" / "programs" / "transformer4l_dp2tp4_train.spmd.hlo.gz")
FAULTS = str(ROOT / "assets" / "programs" / "parallel_mlp_faults.dtir.yaml")


def test_a_task_by_name_says_what_forced_it(run: Run) -> None:
    done = run("show", "--why", "all-reduce.1", TRAIN)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("all-reduce.1 (all-reduce) is implicit: it carries the source name of its operand dot.3")
    assert lines[1].strip().startswith("dot.3 (dot) contracts a dim that is split over axis1 (4)")
    assert "  axis1    share of a sum -> replicated" in lines
    assert "  a rank sends at least 1536 bytes of a message of 1024" in lines


def test_all_of_them_as_json_are_those_of_the_table(run: Run) -> None:
    every = json.loads(run("show", "--why", "all", "--format", "json", TRAIN).out)
    table = json.loads(run("show", "--format", "json", TRAIN).out)
    assert [item["id"] for item in every["why"]] == [item["id"] for item in table["collectives"]]
    assert {item["asked"] for item in every["why"]} == {"implicit"}


@pytest.mark.parametrize(("task", "words"), [("nobody", "is not in the program"), ("add_bias", "does not communicate")])
def test_a_task_that_has_no_reason_is_a_usage_error(run: Run, task: str, words: str) -> None:
    done = run("show", "--why", task, FAULTS)
    assert done.code == 2
    assert f"--why {task}: this task {words}" in done.err


def test_a_broken_program_is_shown_with_its_findings(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.dtir.yaml"
    path.write_text(Path(FAULTS).read_text(encoding="utf-8").replace("in: [x, w1]", "in: [wide, w1]"), encoding="utf-8")
    done = run("show", "--why", "all", "--format", "json", str(path))
    assert done.code in (1, 2)
    assert json.loads(done.out)["diagnostics"]
