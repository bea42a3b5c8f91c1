"""Programs judged again with a proposed repair made, and by how much wrong values are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR
from dtir.verify.value import Repair, judge_values


def programs(shared_data: Path) -> dict[str, DistributedTaskIR]:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    return {read.name[:4]: read.program for read in read_programs(text) if read.program is not None}


def test_the_value_is_right_once_the_first_repair_is_made(shared_data: Path) -> None:
    tried = 0
    for program in programs(shared_data).values():
        verdict = judge_values(program)
        if not verdict.repairs:
            continue
        tried += 1
        again = judge_values(program, repairs=verdict.repairs[:1])
        assert verdict.bad[0].value not in {item.value for item in again.bad}
    assert tried > 30


def test_a_repair_that_uncovers_the_next_fault_says_which(shared_data: Path) -> None:
    program = programs(shared_data)["C001"]
    verdict = judge_values(program)
    again = judge_values(program, repairs=verdict.repairs[:1])
    assert [item.name for item in again.bad] == ["y"]
    assert again.bad[0].likeness is not None
    assert again.bad[0].likeness.factor == 2
    both = judge_values(program, repairs=[verdict.repairs[0], again.repairs[0]])
    assert both.ok


def test_a_repair_of_another_program_changes_nothing(shared_data: Path) -> None:
    program = programs(shared_data)["C006"]
    foreign = Repair("insert", "0" * 32, "all-reduce of something else")
    assert judge_values(program, repairs=[foreign]) == judge_values(program)


def test_every_rank_says_by_how_much_it_is_wrong(shared_data: Path) -> None:
    (bad,) = judge_values(programs(shared_data)["C009"]).bad
    assert [item.rank for item in bad.differences] == [0, 1, 2, 3]
    assert all(item.ratio == pytest.approx(2.0) and item.wrong == item.elements == 6 for item in bad.differences)
