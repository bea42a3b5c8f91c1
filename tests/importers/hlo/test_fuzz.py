"""Cut and mutated real files: findings, never an exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.importers.hlo import analyse_text, import_hlo
from tests.helpers.mangle import mutate
from tests.importers.hlo.hlo_files import fixture_paths, read

TEXTS = [read(path) for path in fixture_paths()]
PIECES = [
    *"{}()[]\"',=%\n\0\r",
    "<=",
    "ROOT ",
    "ENTRY ",
    "/*",
    "*/",
    "//",
    "99999999999999999999",
    "-1",
    "mesh[",
    "T(",
    "...",
    "é",
    "HloModule ",
    "f32[",
    "constant(",
    "parameter(0)",
    "replica_groups=",
    "sharding=",
    "to_apply=",
    "body=",
    "index=7",
]


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
def test_mutated_files(text: str, seed: int) -> None:
    broken = mutate(text, random.Random(seed), PIECES)
    found = import_hlo(broken)
    assert (found.program is None) == (not found.diagnostics.ok)
    if found.program is not None:
        assert [item.render() for item in found.program.diagnostics()] == []
    lines = broken.count("\n") + 1
    assert all(1 <= int(item.path[1]) <= lines for item in found.diagnostics if item.path)


@pytest.mark.parametrize("path", fixture_paths(), ids=lambda path: path.name)
def test_cut_files(path: Path) -> None:
    text = read(path)
    for end in range(0, len(text.rstrip()) - 1, max(1, len(text) // 60)):
        analysed = analyse_text(text[:end])
        assert analysed.problems, f"cut at {end} of {len(text)} characters went unnoticed"


@settings(max_examples=200)
@given(st.text(alphabet=st.sampled_from("{}()[]=,%\"' \na01f32.-_/*#<>T:"), max_size=200))
def test_noise(noise: str) -> None:
    import_hlo(noise)
    import_hlo(f"HloModule m\nENTRY e {{\n  p = f32[2] parameter(0)\n  q = {noise}\n}}\n")
