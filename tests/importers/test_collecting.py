"""The cycle collector rests while an input is read, and goes on afterwards whatever happens."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

from dtir.importers import load_bytes
from dtir.importers.collecting import uncollected


@pytest.fixture(autouse=True)
def collector_on() -> Iterator[None]:
    assert gc.isenabled()
    yield
    gc.enable()


def test_the_collector_goes_on_after_the_last_of_several_readers() -> None:
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_exception_and_after_a_refused_input() -> None:
    with pytest.raises(ValueError, match="no"), uncollected():
        raise ValueError("no")
    assert gc.isenabled()
    assert load_bytes(b"\x00\x01", name="x").program is None
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


def test_readers_in_several_threads_do_not_let_it_go_on_for_each_other() -> None:
    inside, seen = Barrier(3), []

    def read() -> None:
        with uncollected():
            inside.wait()
            seen.append(gc.isenabled())
            inside.wait()

    threads = [Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    inside.wait()
    for thread in threads:
        thread.join()
    assert seen == [False, False]
    assert gc.isenabled()
