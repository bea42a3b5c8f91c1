from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.depth import JsonDepth

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\[]{}é\n')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.sampled_from('k"\\{[')), inner, max_size=4),
    max_leaves=20,
)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@given(JSON, st.lists(st.integers(1, 5), min_size=1), st.booleans())
def test_depth_is_that_of_the_value_however_the_bytes_are_cut(value: object, cuts: list[int], ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    depth = depth_of(value)
    for limit, fits in ((depth, True), (depth - 1, False))[: 1 + (depth > 0)]:
        guard = JsonDepth(limit)
        at, answers = 0, []
        while at < len(data):
            step = cuts[at % len(cuts)]
            answers.append(guard.feed(data[at : at + step]))
            at += step
        assert all(answers) is fits
        assert guard.complete


@pytest.mark.parametrize(
    ("text", "open_brackets", "in_string"),
    [(b'{"a": [1', 2, False), (b'{"a": "x', 1, True), (b'{"a": "x\\', 1, True), (b"[]]", -1, False), (b"", 0, False)],
)
def test_what_is_open_at_the_end(text: bytes, open_brackets: int, in_string: bool) -> None:
    guard = JsonDepth(100)
    guard.feed(text)
    assert (guard.open, guard.in_string) == (open_brackets, in_string)


def test_a_bracket_in_a_string_is_text() -> None:
    assert JsonDepth(1).feed(b'["[[[[", "\\"[[[", "\\\\", "{{{"]')
