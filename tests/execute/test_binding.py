from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import Binding, BindingError, Seat, load_backend, spread
from dtir.execute.backends import BackendError
from dtir.execute.binding import require_fit


@given(st.integers(1, 40), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 4)))
def test_ranks_spread_evenly_and_in_order(ranks: int, processes: int, devices: int | None) -> None:
    if processes > ranks:
        with pytest.raises(BindingError, match=f"{processes} processes are more than the program's {ranks} ranks"):
            spread("mpi", ranks, processes, devices)
        return
    binding = spread("mpi", ranks, processes, devices)
    places = [seat.process for seat in binding.seats]
    assert places == sorted(places)
    sizes = [len(binding.ranks_of(process)) for process in range(processes)]
    assert max(sizes) - min(sizes) <= 1
    assert Binding.from_json(binding.to_json()) == binding


def test_the_file_names_every_rank() -> None:
    text = Binding("cupy", (Seat(0, 0), Seat(0, 1), Seat(1, 0))).to_json()
    whole = json.loads(text)
    assert whole["processes"] == 2
    assert whole["ranks"][1] == {"rank": 1, "process": 0, "device": 1}


GOOD = json.loads(Binding("numpy", (Seat(0), Seat(0))).to_json())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "other"}, "the file is other 1.0.0, wanted dtir.binding 1.0.0"),
        ({"version": "2.0.0"}, "wanted dtir.binding 1.0.0"),
        ({"extra": 1}, "has the keys"),
        ({"backend": 3}, "has the keys"),
        ({"ranks": {}}, "has the keys"),
        ({"ranks": [{"rank": 0, "process": 0}, {"rank": 0, "process": 0}]}, "rank 0 is bound twice"),
        ({"ranks": [{"rank": 1, "process": 0}]}, "ranks must be 0 to n - 1"),
        ({"ranks": [{"rank": 0, "process": 1}]}, "processes must be numbered 0 to n - 1"),
        ({"ranks": [{"rank": 0, "process": -1}]}, "whole numbers"),
        ({"ranks": [{"rank": True, "process": 0}]}, "whole numbers"),
        ({"ranks": [{"rank": 0, "process": 0, "device": "gpu"}]}, "wanted a whole number or null"),
        ({"ranks": ["0"]}, "every entry of ranks is an object"),
    ],
)
def test_what_is_no_binding(change: dict, said: str) -> None:
    with pytest.raises(BindingError, match=said):
        Binding.from_json(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "3"])
def test_other_text(text: str) -> None:
    with pytest.raises(BindingError):
        Binding.from_json(text)


def test_a_binding_is_for_a_number_of_ranks() -> None:
    require_fit(spread("numpy", 4, 1), 4)
    with pytest.raises(BindingError, match="the binding is for 4 ranks, the program has 8"):
        require_fit(spread("numpy", 4, 1), 8)


def test_back_ends_by_name() -> None:
    probe = load_backend("numpy").probe()
    assert probe.ok
    assert "numpy" in probe.reason
    with pytest.raises(BackendError, match="did you mean numpy"):
        load_backend("nunpy")
    with pytest.raises(BackendError, match="known are numpy"):
        load_backend("zzz")
