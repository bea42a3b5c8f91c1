from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cli.terminal import PLAIN, Style, count, printable, size_text, style_for, table, width
from dtir.schema.diagnostics import Severity


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain två", "plain två"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b2J", r"\x9b2J"),
        ("abc\u202edef", r"abc\u202edef"),
        ("\ud800", r"\ud800"),
        ("\x00\x7f", r"\x00\x7f"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_what_cannot_be_printed_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_everything_shown_is_printable_and_can_be_written(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode("utf-8")


def test_columns_line_up_for_wide_and_combining_characters() -> None:
    lines = table(["name", "n"], [["漢字", "1"], ["e\u0301", "22"], ["abcd", "333"]], right=[1])
    assert [width(line) for line in lines] == [9, 9, 9, 9]
    assert lines[1] == "漢字    1"


def test_a_column_without_content_is_left_out() -> None:
    assert table(["a", "b", "c"], [["1", "", "3"], ["4", "", "6"]]) == ["a  c", "1  3", "4  6"]


def test_cells_are_escaped() -> None:
    assert table(["a"], [["x\x1b]0;title\x07"]])[1] == r"x\x1b]0;title\x07"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "on"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_on_a_terminal_alone(stream: io.StringIO, environment: dict[str, str], on: bool) -> None:
    assert style_for(stream, environment).on is on


def test_styles_leave_the_text_as_it_is() -> None:
    assert PLAIN.bold("x") == PLAIN.dim("x") == PLAIN.severity(Severity.ERROR, "x") == "x"
    assert "x" in Style(True).severity(Severity.ERROR, "x")
    assert Style(True).bold("x").startswith("\x1b[")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (7, "7 B"),
        (1024, "1 KiB"),
        (1500, "1.46 KiB"),
        (3 << 40, "3 TiB"),
        (1 << 60, "1,024 PiB"),
        (-2048, "-2 KiB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_counts() -> None:
    assert [count(0, "task"), count(1, "task"), count(12345, "task"), count(2, "axis", "axes")] == [
        "0 tasks",
        "1 task",
        "12,345 tasks",
        "2 axes",
    ]
