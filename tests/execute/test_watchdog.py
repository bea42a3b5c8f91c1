"""When a process is ended, and when it is only late; told from rows, no process waits here."""

from __future__ import annotations

import os

import pytest

from dtir.execute.launch_board import Board, BoardError, Doing
from dtir.execute.watchdog import EXIT_STATUS, PATIENCE, STALLED, Stall, Watchdog, Why, stall_limit_s

SECOND = 1_000_000_000
LIMIT_S = 2.0


def watched(board: Board, launcher: int = 0) -> Watchdog:
    def report(stall: Stall) -> None:
        raise AssertionError(stall)

    return Watchdog(board, 0, LIMIT_S, report, launcher)


def board_of(*doing: Doing) -> Board:
    board = Board.create(len(doing))
    for process, what in enumerate(doing):
        board.write(process, what, step=3, group=1, since_ns=0)
    return board


WAITING, COMPUTING, DONE = Doing.COMMUNICATING, Doing.COMPUTING, Doing.FINISHED


@pytest.mark.parametrize(
    ("doing", "seconds", "why"),
    [
        ((WAITING, WAITING), 1.9, None),
        ((WAITING, WAITING), 2.1, Why.STALLED),
        ((WAITING, DONE), 2.1, Why.STALLED),
        ((WAITING, COMPUTING), 2.1, None),
        ((WAITING, COMPUTING), PATIENCE * LIMIT_S + 0.1, Why.STALLED),
        ((COMPUTING, WAITING), 100.0, None),
    ],
    ids=["not yet", "all wait", "the other is done", "the other computes", "patience has an end", "computes itself"],
)
def test_who_waits_too_long_is_ended(doing: tuple[Doing, ...], seconds: float, why: Why | None) -> None:
    assert watched(board_of(*doing)).look(int(seconds * SECOND)) is why


def test_a_request_to_stop_is_followed() -> None:
    board = board_of(COMPUTING, COMPUTING)
    dog = watched(board)
    assert dog.look(0) is None
    board.stop()
    assert dog.look(0) is Why.STOPPED


def gone_pid() -> int:
    """The number of a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_a_process_that_is_gone_ends_the_others_unless_it_was_done() -> None:
    pid = gone_pid()
    board = board_of(COMPUTING, DONE)
    board.write(1, DONE, pid=pid)
    assert watched(board).look(0) is None
    board.write(1, COMPUTING, pid=pid)
    assert watched(board).look(0) is Why.STOPPED


def test_without_its_launcher_a_process_ends() -> None:
    assert watched(board_of(COMPUTING), launcher=os.getpid()).look(0) is None
    assert watched(board_of(COMPUTING), launcher=gone_pid()).look(0) is Why.ABANDONED


def test_rows_of_other_hosts_stay_empty_and_hold_nobody_up() -> None:
    board = Board.create(2)
    board.write(0, WAITING, since_ns=0)
    assert watched(board).look(3 * SECOND) is Why.STALLED


def test_the_limit_grows_with_what_is_planned() -> None:
    assert stall_limit_s() == 30.0
    assert stall_limit_s(10_000_000.0) == 200.0
    assert EXIT_STATUS[Why.STALLED] == STALLED == 75


def test_a_board_is_seen_by_all_who_open_it(tmp_path) -> None:
    made = Board.create(3, tmp_path / "board")
    other = Board.open(tmp_path / "board", 3)
    other.write(2, Doing.COMMUNICATING, step=7, group=4, done=9)
    row = made.read(2)
    assert (row.doing, row.step, row.group, row.done, row.pid) == (Doing.COMMUNICATING, 7, 4, 9, os.getpid())
    assert made.read(0).pid == 0
    made.stop()
    assert other.stopping


def test_a_board_of_another_size_is_refused(tmp_path) -> None:
    Board.create(3, tmp_path / "board")
    with pytest.raises(BoardError, match="192 are wanted"):
        Board.open(tmp_path / "board", 2)
