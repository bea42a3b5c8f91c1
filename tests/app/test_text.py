from __future__ import annotations

import math

import pytest
from dtir_app.text import (
    bytes_text,
    count_text,
    exact_bytes_text,
    parse_bytes,
    plural,
    ranks_text,
    runs_text,
    shorten,
)
from hypothesis import given
from hypothesis import strategies as st

from dtir.ir.ranks import RankRange


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (134217728, "128 MiB"),
        (1.5 * 2**50, "1.5 PiB"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_bytes_have_a_binary_unit(size: float | None, text: str) -> None:
    assert bytes_text(size) == text


def test_exact_bytes_stand_behind_a_rounded_size() -> None:
    assert exact_bytes_text(134217729) == "128 MiB (134,217,729 B)"
    assert exact_bytes_text(12) == "12 B"


@given(st.integers(0, 2**60))
def test_a_printed_size_reads_back_within_its_rounding(size: int) -> None:
    read = parse_bytes(bytes_text(size).replace(",", ""))
    assert read is not None
    assert math.isclose(read, size, rel_tol=0.06)


@pytest.mark.parametrize(
    ("text", "size"), [("64MiB", 2**26), ("64mb", 2**26), ("1.5k", 1536), ("7", 7), ("2 GiB", 2**31), ("0b", 0)]
)
def test_sizes_as_people_write_them(text: str, size: float) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "many", "12 apples", "-3", "1e9", "KiB"])
def test_what_is_no_size_is_none(text: str) -> None:
    assert parse_bytes(text) is None


@given(st.lists(st.integers(0, 200), unique=True, min_size=1, max_size=60).map(sorted))
def test_folded_ranks_unfold_to_the_same_set(ranks: list[int]) -> None:
    found: list[int] = []
    for piece in ranks_text(ranks, limit=1000).split(", "):
        first, _, last = piece.partition("–")
        found += range(int(first), int(last or first) + 1)
    assert found == ranks


def test_ranks_that_are_left_out_are_counted() -> None:
    assert ranks_text(tuple(range(0, 40, 2)), limit=3) == "0, 2, 4, … 17 more"
    assert ranks_text((5, 3, 4)) == "5, 3, 4"


def test_a_range_of_ranks_is_never_walked() -> None:
    assert ranks_text(RankRange(0, 2_000_000_000)) == "0–1999999999"
    assert ranks_text(RankRange(1, 2_000_000_000, 4)) == "1, 5, … 1999999997 (every 4)"
    assert ranks_text(RankRange(0, 8, 4)) == "0, 4"


def test_runs() -> None:
    assert [runs_text(number) for number in (1, 4, None, 0)] == ["", "×4", "×?", "×0"]
    assert runs_text(10**40).startswith("×1.0e+40")


def test_words() -> None:
    assert plural(1, "task") == "1 task"
    assert plural(1783, "task") == "1,783 tasks"
    assert plural(2, "entry", "entries") == "2 entries"
    assert count_text(43552) == "43,552"


@given(st.text(max_size=80), st.integers(4, 30))
def test_short_text_keeps_its_limit(text: str, limit: int) -> None:
    made = shorten(text, limit)
    assert len(made) <= limit
    assert made == text or "…" in made
