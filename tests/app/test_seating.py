"""Which process each rank gets, as it is chosen in the form of a run."""

from __future__ import annotations

import pytest
from dtir_app.seating import SHOWN, WAYS, ranks_text, seating

from dtir.execute.binding import in_turn, spread


@pytest.mark.parametrize(
    ("way", "written", "homes"),
    [
        ("blocks", "ignored", (0, 0, 1, 1)),
        ("turns", "ignored", (0, 1, 0, 1)),
        ("written", "1 | 0 2-3", (1, 0, 1, 1)),
        ("written", "0-3", (0, 0, 0, 0)),
        ("written", in_turn("mpi", 4, 2).to_json(), (0, 1, 0, 1)),
    ],
)
def test_every_way_gives_every_rank_a_process(way: str, written: str, homes: tuple[int, ...]) -> None:
    assert way in WAYS
    chosen = seating("mpi", way, written, 4, 2, 64)
    assert chosen.problem == ""
    assert chosen.binding is not None
    assert tuple(seat.process for seat in chosen.binding.seats) == homes


@pytest.mark.parametrize(
    ("way", "written", "ranks", "processes", "said"),
    [
        ("written", "", 4, 2, "4 of 4 ranks have no process"),
        ("written", "0 1 | 2", 4, 2, "1 of 4 ranks have no process: [3]"),
        ("written", "0 1 | 1-3", 4, 2, "rank 1 is bound twice"),
        ("written", "0-4", 4, 2, "not within the program's ranks 0 to 3"),
        ("written", "3-0", 4, 2, "not within"),
        ("written", "0-3 | ", 4, 2, None),
        ("written", "a-b", 4, 2, "'a-b' is no rank"),
        ("written", "-1", 4, 2, "'-1' is no rank"),
        ("written", "0-99999999999999", 4, 2, "is no rank"),
        ("written", "| 0-3", 4, 2, "processes must be numbered"),
        ("written", "{", 4, 2, "no JSON"),
        ("written", spread("mpi", 3, 2).to_json(), 4, 2, "for 3 ranks, the program has 4"),
        ("written", spread("cupy", 4, 1).to_json(), 4, 2, "for the cupy back end, chosen is mpi"),
        ("blocks", "", 4, 5, "5 processes are more than the program's 4 ranks"),
        ("turns", "", 4, 5, "5 processes are more than the program's 4 ranks"),
        ("turns", "", 100, 65, "65 processes are more than the 64"),
    ],
)
def test_what_cannot_be_is_said(way: str, written: str, ranks: int, processes: int, said: str | None) -> None:
    chosen = seating("mpi", way, written, ranks, processes, 64)
    if said is None:
        assert chosen.binding is not None
        return
    assert chosen.binding is None
    assert said in chosen.problem
    assert chosen.text == ""


def test_the_choice_is_spelt_out_and_long_ones_say_what_is_left_out() -> None:
    assert seating("mpi", "turns", "", 4, 2, 64).text == "process 0: ranks 0, 2 · process 1: ranks 1, 3"
    assert seating("mpi", "blocks", "", 40, 40, 64).text.endswith(f"· … {40 - SHOWN} more")
    assert ranks_text((7,)) == "rank 7"
    assert ranks_text(range(0, 200, 2)).endswith("14, … 100 in all")
