"""The corpus of faulty programs: each is reported with exactly its codes, and every corrected variant is clean."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from dtir.importers.yaml import ReadProgram, read_programs
from dtir.schema.diagnostics import Diagnostic
from dtir.verify import verify
from tests.helpers.shared import absent_reason, shared_data_path

PATH = shared_data_path()


@cache
def corpus() -> dict[str, tuple[dict[str, Any], ReadProgram, ReadProgram]]:
    """Per entry what is expected, the faulty program and the corrected one."""
    if PATH is None:
        return {}
    text = (PATH / "bug_corpus.yaml").read_text()
    entries = {entry["id"]: entry for entry in yaml.safe_load(text)["entries"]}
    faulty, fixed = read_programs(text), read_programs(text, fixed=True)
    assert [item.name for item in faulty] == [item.name for item in fixed] == list(entries)
    return {item.name: (entries[item.name], item, other) for item, other in zip(faulty, fixed, strict=True)}


NAMES = list(corpus()) or [pytest.param("", marks=pytest.mark.skip(reason=absent_reason()))]


def found(read: ReadProgram) -> list[Diagnostic]:
    assert read.program is not None, [item.render() for item in read.diagnostics]
    return [*read.diagnostics, *verify(read.program)]


@pytest.mark.parametrize("name", NAMES)
def test_a_faulty_program_is_reported_with_its_codes(name: str) -> None:
    entry, faulty, _ = corpus()[name]
    codes = {item.code for item in found(faulty)}
    expected = set(entry["expected_codes"])
    assert expected <= codes <= expected | set(entry.get("also_ok", ()))


@pytest.mark.parametrize("name", NAMES)
def test_a_corrected_program_is_clean(name: str) -> None:
    _, _, fixed = corpus()[name]
    assert [item.render() for item in found(fixed)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_says_what_it_is_about_and_what_to_do(name: str) -> None:
    _, faulty, _ = corpus()[name]
    for item in found(faulty):
        assert item.hint
        assert item.path
        assert any(word.startswith(("node:", "value:")) for word in item.subject)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_the_same_every_time(name: str) -> None:
    _, faulty, _ = corpus()[name]
    assert found(faulty) == found(faulty)
