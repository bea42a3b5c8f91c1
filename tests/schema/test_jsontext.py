"""Strict reading and canonical writing of JSON text, digests."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.schema import SerializationError
from dtir.schema.jsontext import (
    MAX_JSON_DEPTH,
    ascii_key,
    literal_text,
    parse_json,
    raw_json,
    string_text,
    text_digest,
    utf8,
)
from tests.helpers.strategies import json_like, texts


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts)
def test_literals_are_what_json_writes(value: Any) -> None:
    assert literal_text(value) == json.dumps(value, ensure_ascii=False)


def test_literals_of_the_format() -> None:
    assert literal_text(1180591620717411303424) == "1180591620717411303424"
    assert [literal_text(value) for value in (0.1, 1.0, 1e16, 1e-07, -0.0, 1)] == [
        "0.1",
        "1.0",
        "1e+16",
        "1e-07",
        "-0.0",
        "1",
    ]
    assert string_text('"\\\n\r\t\b\f\x1f\x7f/\u2028🙂') == '"\\"\\\\\\n\\r\\t\\b\\f\\u001f\x7f/\u2028🙂"'
    assert literal_text((1,)) is None
    assert literal_text(b"x") is None


def test_what_no_literal_can_say() -> None:
    for value in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(SerializationError, match="does not permit NaN or infinity"):
            literal_text(value)
    with pytest.raises(SerializationError, match="too many digits"):
        literal_text(10**5000)


@given(texts)
def test_the_sort_key_is_the_ascii_text(text: str) -> None:
    written = string_text(text)
    assert ascii_key(written) == json.dumps(text, ensure_ascii=True)


@given(json_like())
def test_raw_text_is_sorted_and_compact(tree: Any) -> None:
    text = raw_json(tree)
    assert text == json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert raw_json(parse_json(text)) == text


def test_digest_is_blake2b_in_a_domain() -> None:
    expected = hashlib.blake2b("ir:x\0é".encode(), digest_size=20).hexdigest()
    assert text_digest("ir:x", "é") == expected
    assert len(expected) == 40
    with pytest.raises(SerializationError, match=r"lone surrogate U\+D800"):
        text_digest("ir:x", "a\ud800")
    assert utf8("é") == b"\xc3\xa9"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "invalid canonical JSON", "Expecting value at line 1, column 1"),
        ('{"a":1', "invalid canonical JSON", "line 1, column 7"),
        ("[1]\n]", "invalid canonical JSON", "Extra data at line 2"),
        ('"\n"', "invalid canonical JSON", "Invalid control character"),
        ("\ufeff1", "invalid canonical JSON", "BOM"),
        ("1" * 5000, "invalid canonical JSON", "digits"),
        ('{"a":{"b":1,"b":2}}', "duplicate canonical JSON key: 'b'", "once"),
        ('{"\\ud800":1,"\\ud800":2}', "duplicate canonical JSON key: '\\ud800'", "once"),
        ("[NaN]", "canonical JSON does not permit NaN", "finite"),
        ("-Infinity", "canonical JSON does not permit -Infinity", "finite"),
    ],
)
def test_what_is_not_read(text: str, message: str, hint: str) -> None:
    with pytest.raises(SerializationError) as caught:
        parse_json(text)
    assert str(caught.value) == message
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def deep_call(levels: int, work: Any) -> Any:
    """Call `work` with many frames on the stack."""
    return work() if levels == 0 else deep_call(levels - 1, work)


def test_legal_depth_is_read_under_any_caller() -> None:
    text = nested(MAX_JSON_DEPTH)
    room = sys.getrecursionlimit() - 150
    for levels in (0, room):
        tree = deep_call(levels, lambda: parse_json(text))
        assert deep_call(levels, lambda tree=tree: raw_json(tree)) == text


def test_endless_depth_is_an_error_under_any_caller() -> None:
    for levels in (0, 800):
        with pytest.raises(SerializationError, match="nests deeper than 984 levels"):
            deep_call(levels, lambda: parse_json(nested(100_000)))


def test_errors_of_a_fresh_stack_are_those_of_the_text() -> None:
    with pytest.raises(SerializationError, match="duplicate canonical JSON key: 'a'"):
        deep_call(800, lambda: parse_json('{"a":1,"a":' + nested(500) + "}"))


def test_an_infinite_float_has_no_raw_text() -> None:
    with pytest.raises(SerializationError, match="does not permit NaN or infinity"):
        raw_json([float("inf")])
