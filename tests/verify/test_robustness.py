"""No rule ever raises, whatever a structurally valid program holds; and what it reports is well formed and stable."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.explain import catalogue
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Severity
from dtir.verify import STRICTNESS, Mode, Strictness, verify
from tests.helpers.strategies import programs
from tests.helpers.wild import wild_programs

MODES: tuple[Mode | None, ...] = (None, "check", "infer")


def check(program: DistributedTaskIR, mode: Mode | None, strictness: Strictness) -> None:
    structure = program.diagnostics()
    report = verify(program, mode=mode, strictness=strictness)
    assert report.diagnostics[: len(structure)] == structure.diagnostics
    assert report == verify(program, mode=mode, strictness=strictness)
    for item in report:
        assert item.code in catalogue(), item.render()
        assert item.hint or item in structure.diagnostics
        if item.severity is not Severity.INFO and item not in structure.diagnostics:
            assert item.subject
    assert len(set(report.diagnostics)) == len(report.diagnostics)


@settings(max_examples=150)
@given(wild_programs(), st.sampled_from(MODES), st.sampled_from(STRICTNESS))
def test_wild_programs_are_judged(program: DistributedTaskIR, mode: Mode | None, strictness: Strictness) -> None:
    check(program, mode, strictness)


@settings(max_examples=150)
@given(wild_programs(tame=True), st.sampled_from(MODES), st.sampled_from(STRICTNESS))
def test_tame_programs_are_judged(program: DistributedTaskIR, mode: Mode | None, strictness: Strictness) -> None:
    check(program, mode, strictness)


@given(programs(), st.sampled_from(MODES))
def test_programs_with_extensions_are_judged(program: DistributedTaskIR, mode: Mode | None) -> None:
    check(program, mode, "nccl")


@given(programs(extended=False), st.sampled_from(MODES))
def test_programs_of_the_upstream_format_are_judged(program: DistributedTaskIR, mode: Mode | None) -> None:
    check(program, mode, "nccl")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=500)
@given(wild_programs() | wild_programs(tame=True), st.sampled_from(MODES), st.sampled_from(STRICTNESS))
def test_many_programs_are_judged(program: DistributedTaskIR, mode: Mode | None, strictness: Strictness) -> None:
    check(program, mode, strictness)
