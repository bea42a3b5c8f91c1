from __future__ import annotations

import numpy as np
import pytest
from dtir_app.tandem import aligned, alike, tandem_runs
from hypothesis import given
from hypothesis import strategies as st

BLOCK = list(range(10, 20))


def runs(tokens: list[int]) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    return [(run.period, run.starts, run.stops) for run in tandem_runs(np.array(tokens, dtype=np.int64))]


def test_a_block_that_repeats_is_found_between_other_things() -> None:
    assert runs([1, 2, *BLOCK * 5, 3]) == [(10, (2, 12, 22, 32, 42), (12, 22, 32, 42, 52))]


def test_the_shortest_block_is_the_block() -> None:
    assert runs(BLOCK * 8)[0][0] == 10


def test_a_copy_that_lacks_something_still_counts() -> None:
    lacking = BLOCK[:4] + BLOCK[5:]
    assert runs([*BLOCK * 3, *lacking, *BLOCK * 2]) == [
        (10, (0, 10, 20, 30, 39, 49), (10, 20, 30, 39, 49, 59)),
    ]
    assert runs([*BLOCK * 3, *lacking, 7])[0][2][-1] == 39
    assert runs([7, *lacking, *BLOCK * 3])[0][1][0] == 1


def test_a_copy_that_is_mostly_something_else_does_not_count() -> None:
    other = [1, 2, 3, 4, 5, 6, 7, *BLOCK[:3]]
    assert runs([*BLOCK * 3, *other])[0][2] == (10, 20, 30)


def test_two_kinds_of_block_are_two_runs() -> None:
    found = runs([*BLOCK * 4, 1, *([5, 6, 7, 8] * 6)])
    assert [item[0] for item in found] == [10, 4]


@pytest.mark.parametrize("tokens", [[], [1], [1] * 40, list(range(60)), [1, 2, 3] * 20])
def test_what_is_no_block_is_left_alone(tokens: list[int]) -> None:
    """Neither equal tasks in a row nor blocks below the least size, which would say nothing."""
    for period, starts, _ in runs(tokens):
        assert period >= 4
        assert len(starts) >= 2


@given(st.lists(st.integers(0, 3), max_size=120))
def test_runs_lie_apart_within_the_row_and_their_copies_touch(tokens: list[int]) -> None:
    row = np.array(tokens, dtype=np.int64)
    seen = np.zeros(len(tokens), int)
    for run in tandem_runs(row, least_saved=4):
        assert run.starts[1:] == run.stops[:-1]
        seen[run.starts[0] : run.stops[-1]] += 1
        lengths = {stop - start for start, stop in zip(run.starts, run.stops, strict=True)}
        assert run.period in lengths
    assert seen.max(initial=0) <= 1


def test_alignment_is_in_order_and_of_equals() -> None:
    pairs = aligned(np.array([1, 2, 3, 4]), np.array([1, 9, 3, 4, 4]))
    assert pairs == [(0, 0), (2, 2), (3, 3)]
    assert alike(np.array([1, 2, 3, 4]), np.array([1, 2, 3]))
    assert not alike(np.array([1, 2, 3, 4]), np.array([1, 2, 9, 9]))
