"""The table of codes: complete, in agreement with the specification, and every example gives what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dtir.importers.yaml import read_programs
from dtir.schema.diagnostics import Diagnostic
from dtir.verify import verify
from dtir.verify.catalogue import NO_TEXT, TABLE, Entry, Judge, document, entry_of
from dtir.verify.catalogue.entry import mend

WITH_TEXT = [entry for entry in TABLE if entry.code not in NO_TEXT]


def found(entry: Entry, text: str) -> list[Diagnostic]:
    """What reading and judging an example finds."""
    (read,) = read_programs(document(text))
    diagnostics = list(read.diagnostics)
    if read.program is not None:
        judge = "value" if entry.judge is Judge.VALUE else "static"
        diagnostics += verify(read.program, judges=("structure", judge))
    return diagnostics


@pytest.mark.parametrize("entry", WITH_TEXT, ids=lambda entry: entry.code)
def test_the_bad_example_is_reported(entry: Entry) -> None:
    hits = [item for item in found(entry, entry.bad) if item.code == entry.code]
    assert hits
    assert {item.severity for item in hits} == {entry.severity}
    assert all(item.hint for item in hits)


@pytest.mark.parametrize("entry", WITH_TEXT, ids=lambda entry: entry.code)
def test_the_good_example_is_clean(entry: Entry) -> None:
    assert [item.render() for item in found(entry, entry.good)] == []


@pytest.mark.parametrize("entry", WITH_TEXT, ids=lambda entry: entry.code)
def test_the_examples_differ(entry: Entry) -> None:
    assert entry.bad != entry.good


def test_codes_without_text_are_the_ones_that_readers_refuse() -> None:
    assert {entry.code for entry in TABLE if "mesh:" not in entry.bad} == NO_TEXT


def test_the_table_is_that_of_the_specification(shared_data: Path) -> None:
    rows = yaml.safe_load((shared_data / "codes.yaml").read_text())["codes"]
    wanted = {row["code"]: (row["severity"], row["judge"], row["cue"]) for row in rows}
    assert {entry.code: (entry.severity.value, entry.judge.value, entry.cue) for entry in TABLE} == wanted
    assert len(TABLE) == len(wanted) == 103


def test_an_entry_needs_every_text() -> None:
    with pytest.raises(ValueError, match=r"hint of a\.b is empty"):
        Entry("a.b", Judge.STATIC, "n", "w", "b", "g", " ", "c")
    with pytest.raises(ValueError, match="not dotted"):
        Entry("plain", Judge.STATIC, "n", "w", "b", "g", "h", "c")


def test_mending_needs_the_text_once() -> None:
    assert mend("a b", ("b", "c")) == "a c"
    with pytest.raises(ValueError, match="2 times"):
        mend("b b", ("b", "c"))


def test_an_unknown_code_has_no_entry() -> None:
    assert entry_of("partial.dropped").judge is Judge.BOTH
    with pytest.raises(KeyError):
        entry_of("partial.droped")
