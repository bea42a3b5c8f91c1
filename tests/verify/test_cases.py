"""Each way to be wrong has a case of its own in ``cases/``, named for it, with its valid neighbours beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtir.verify.catalogue import TABLE, Judge
from tests.helpers.authoring import Case, codes, judged, read_cases

FOLDER = Path(__file__).parent / "cases"
CASES = {path.stem: read_cases(path) for path in sorted(FOLDER.glob("*.txt"))}
ALL = [pytest.param(case, id=f"{family}: {case.name}") for family, cases in CASES.items() for case in cases]


@pytest.mark.parametrize("case", ALL)
def test_a_program_has_the_codes_of_its_case(case: Case) -> None:
    assert codes(case.text) == case.expected, [item.render() for item in judged(case.text)]


STRUCTURE = ("rank.", "dataflow.", "task.", "distributed.", "peer.endpoints", "ownership.invalid")
ELSEWHERE = {"sharding.rank", "sharding.unknown_axis", "sharding.axis_reuse", "sharding.incomplete", "collective.participants"}  # fmt: skip
"""Codes whose only programs are the examples of the table (and the tests of the structural verifier)."""


def test_every_code_has_faulty_programs_of_its_own() -> None:
    wanted = {entry.code for entry in TABLE if entry.judge is not Judge.VALUE and not entry.code.startswith(STRUCTURE)}
    have = {code for cases in CASES.values() for case in cases for code in case.expected}
    assert wanted - have - ELSEWHERE == set()


def test_a_case_without_codes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("== a\nmesh [tp, 2]\n")
    with pytest.raises(ValueError, match="does not say which codes"):
        read_cases(path)
    path.write_text("== a\n-> clean\nmesh [tp, 2]\n\n== a\n-> clean\nmesh [tp, 2]\n")
    with pytest.raises(ValueError, match="stands twice"):
        read_cases(path)
