from __future__ import annotations

import io
import threading

import pytest

from dtir.cli import progress
from dtir.cli.command import Console
from dtir.cli.progress import CLEAR, Progress, bar


class Terminal(io.StringIO):
    """A terminal that says when it has been written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        size = super().write(text)
        self.written.set()
        return size


def test_a_terminal_sees_what_is_worked_on_and_then_a_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    terminal = Terminal()
    with Progress(Console(io.StringIO(), terminal, {}), 2) as shown:
        shown.step("a")
        shown.step("b\x1b[2J")
        assert terminal.written.wait(30)
    text = terminal.getvalue()
    assert r"b\x1b[2J" in text or "0/2" in text
    assert text.endswith(CLEAR)


@pytest.mark.parametrize(("err", "environment"), [(io.StringIO(), {}), (Terminal(), {"TERM": "dumb"})])
def test_nothing_is_drawn_elsewhere(
    err: io.StringIO, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    with Progress(Console(io.StringIO(), err, environment), 1) as shown:
        shown.step("a")
    assert err.getvalue() == ""


def test_short_work_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 3600)
    terminal = Terminal()
    with Progress(Console(io.StringIO(), terminal, {}), 1):
        pass
    assert terminal.getvalue() == ""


def test_the_bar() -> None:
    assert bar(1, 2, "a.json", 3.2) == f"[{'#' * 12}{'.' * 12}] 1/2 a.json 3 s"
    assert bar(0, 0, "", 0).startswith("[....")


def test_what_is_done_may_be_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks now and then how far others are hears the same number twice, or skips some."""
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    terminal = Terminal()
    shown = Progress(Console(io.StringIO(), terminal, {}), 10)
    for done in (0, 3, 3, 7):
        shown.at(done, "steps")
    with shown:
        assert terminal.written.wait(30)
    assert "7/10 steps" in terminal.getvalue()
