"""YAML text to nodes: plain scalars, lines, and everything that is refused before it costs anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.yaml.document import (
    MOST_DEPTH,
    MOST_NODES,
    Entries,
    Items,
    Node,
    Scalar,
    plain_value,
    read_documents,
    to_plain,
)
from dtir.importers.yaml.problems import MOST_FINDINGS, Problems, did_you_mean, suggestion


def read(text: str) -> tuple[list[Node], Problems]:
    problems = Problems()
    return read_documents(text, problems), problems


def codes(problems: Problems) -> list[str]:
    return [item.code for item in problems.report()]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("-3", -3), ("1.5", 1.5), ("1e-3", 0.001), ("true", True), ("null", None), ("~", None), ("", None),
        # None of these is taken for a truth value, a time or a number of another base.
        ("no", "no"), ("on", "on"), ("Yes", "Yes"), ("1:30", "1:30"), ("0x10", "0x10"), ("1_000", "1_000"), ("1/4", "1/4"),
        (".inf", ".inf"), ("1" * 19, "1" * 19), ("1e999", "1e999"),
    ],
)  # fmt: skip
def test_plain_scalars_are_what_they_look_like(text: str, value: object) -> None:
    found = plain_value(text)
    assert found == value
    assert type(found) is type(value)


def test_nodes_know_their_lines_and_quotes_make_text() -> None:
    (node,), problems = read('a: 1\nb:\n- "2"\n- {c: 3}\n')
    assert not problems.report()
    assert isinstance(node, Entries)
    items = node.entries["b"]
    assert isinstance(items, Items)
    first, second = items.items
    assert isinstance(first, Scalar)
    assert (first.value, first.line, second.line, node.lines["b"]) == ("2", 3, 4, 2)
    assert to_plain(node) == {"a": 1, "b": ["2", {"c": 3}]}


def test_several_documents_stand_in_one_text() -> None:
    documents, problems = read("a: 1\n---\nb: 2\n")
    assert [to_plain(node) for node in documents] == [{"a": 1}, {"b": 2}]
    assert not problems.report()


def test_aliases_are_read_and_counted_as_what_they_stand_for() -> None:
    (node,), problems = read("a: &x [1, 2]\nb: *x\n")
    assert to_plain(node) == {"a": [1, 2], "b": [1, 2]}
    assert not problems.report()
    bomb = "a0: &a0 [x, x, x, x]\n" + "".join(
        f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}, *a{k - 1}, *a{k - 1}]\n" for k in range(1, 60)
    )
    documents, problems = read(bomb)
    assert documents == []
    assert codes(problems) == ["yaml.limit"]
    assert str(MOST_NODES) in problems.report().errors[0].message


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("a: &x [*x]\n", "yaml.limit", "inside what it refers to"),
        ("a: *x\n", "yaml.syntax", "no anchor above it"),
        ("a: [1, 2\n", "yaml.syntax", "no YAML"),
        ("a: 'x\n", "yaml.syntax", "no YAML"),
        ("a: \x01\n", "yaml.syntax", "no YAML"),
        ("a: 1\na: 2\n", "yaml.duplicate_key", "line 2.*first in line 1"),
        ("a: !!python/object/apply:os.system [ls]\n", "yaml.tag", "python/object"),
        ("a: !mine 3\n", "yaml.tag", "!mine"),
        ("[1]: 2\n", "yaml.type", "a key must be a word"),
    ],
)
def test_what_is_wrong_with_the_text_is_said(text: str, code: str, words: str) -> None:
    import re

    _, problems = read(text)
    errors = problems.report().errors
    assert [item.code for item in errors] == [code]
    assert re.search(words, errors[0].message)


def test_depth_is_bounded_while_reading() -> None:
    fits = "[" * (MOST_DEPTH - 1) + "]" * (MOST_DEPTH - 1)
    assert not read(f"a: {fits}\n")[1].report()
    _, problems = read("a: " + "[" * 200 + "]" * 200 + "\n")
    assert codes(problems) == ["yaml.limit"]
    deep = "".join("  " * k + f"k{k}:\n" for k in range(300))
    assert codes(read(deep)[1]) == ["yaml.limit"]


def test_documents_before_a_fault_stand() -> None:
    documents, problems = read("a: 1\n---\nb: [\n")
    assert [to_plain(node) for node in documents] == [{"a": 1}]
    assert codes(problems) == ["yaml.syntax"]
    assert problems.report().errors[0].path == ("documents", "1")


def test_findings_are_bounded_in_number() -> None:
    _, problems = read("".join(f"- {{a: {k}, a: {k}}}\n" for k in range(MOST_FINDINGS + 20)))
    report = problems.report()
    assert len(report) == MOST_FINDINGS + 1
    assert "20 further findings" in report.diagnostics[-1].message


def test_a_long_mistyped_word_is_not_compared() -> None:
    assert did_you_mean("x" * 100_000, ["axes"]) is None
    assert suggestion("axess", ["axes", "groups"]) == "did you mean axes?"
    assert suggestion("zzz", ["axes", "groups"]) == "known here: axes, groups"


@given(st.text(max_size=200))
def test_no_text_ends_in_an_exception(text: str) -> None:
    documents, problems = read(text)
    for node in documents:
        to_plain(node)
    assert documents or problems.report() or not text.strip() or text.lstrip().startswith(("#", "%"))
