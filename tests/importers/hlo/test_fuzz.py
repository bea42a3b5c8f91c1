"""Cut and mutated real files: findings, never an exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.importers.hlo import analyse_text, import_hlo
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


def mutate(text: str, rng: random.Random) -> str:
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randrange(1, 90) :]
            case 2:
                start = rng.randrange(len(text) + 1)
                text = text[:at] + text[start : start + rng.randrange(200)] + text[at:]
            case 3:
                lines = text.split("\n")
                lines.pop(rng.randrange(len(lines)))
                text = "\n".join(lines)
            case _:
                text = text[:at] if rng.random() < 0.3 else text[:at] + rng.choice(PIECES) + text[at + 1 :]
    return text


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
def test_mutated_files(text: str, seed: int) -> None:
    broken = mutate(text, random.Random(seed))
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
