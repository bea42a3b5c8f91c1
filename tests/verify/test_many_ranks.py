"""The size of a mesh is a number in a file: what it costs to judge a program does not grow with it."""

from __future__ import annotations

import pytest

from dtir.importers.yaml import read_programs
from dtir.verify import MAX_JUDGED_RANKS, RULES, RULES_OVER_RANKS, verify

PROGRAM = """
schema: dtir-program/1
name: wide
mesh: {{axes: [[dp, {size}], [tp, 2]]}}
values:
- {{id: x, shape: [4, 8], dims: [[], [tp]]}}
- {{id: r, shape: [4], dims: [[]]{declared}}}
- {{id: y, shape: [4], dims: [[]]}}
tasks:
- {{id: t1, kind: local, op: sum, in: [x], out: [r], dims: [1]}}
- {{id: t2, kind: collective, coll: all_reduce, in: [r], out: [y], axes: [tp], reduction: sum}}
- {{id: t3, kind: p2p, in: [y], out: [], src: 0, dst: 1}}
inputs: [x]
outputs: [y]
issue: {{0: [t1, t2, t3], 1: [t1, t2, t3]}}
"""
PENDING = ", partial: {tp: sum}"


def codes(size: int, declared: str) -> list[str]:
    program = read_programs(PROGRAM.format(size=size, declared=declared))[0].program
    assert program is not None
    assert program.diagnostics().ok
    return [item.code for item in verify(program)]


@pytest.mark.parametrize("size", [10**6, 10**17])
def test_layouts_are_judged_on_any_mesh_and_the_rest_is_said(size: int) -> None:
    assert "verify.skipped" in codes(size, PENDING)
    assert "partial.dropped" in codes(size, "")
    assert "partial.dropped" not in codes(size, PENDING)


def test_rules_over_ranks_are_left_out_only_beyond_the_limit() -> None:
    assert MAX_JUDGED_RANKS >= 1_000_000
    assert set(RULES) > RULES_OVER_RANKS
    assert "verify.skipped" not in codes(2, PENDING)
