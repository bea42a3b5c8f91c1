from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
from dtir_app import memory


class Ring:
    """Something that only the cycle collector frees."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    memory._ended, memory._waiting = 0, False
    yield
    gc.unfreeze()
    memory._ended, memory._waiting = 0, False


def end_sessions(count: int) -> None:
    """So many sessions end, and their rest is over."""
    waiting: list[Callable[[], None]] = []
    for _ in range(count):
        memory.trim_soon(lambda seconds, then: waiting.append(then))
    assert len(waiting) == 1, "one rest for all that end meanwhile"
    waiting[0]()


def test_what_is_set_aside_is_not_gone_through_and_what_comes_later_is() -> None:
    old = weakref.ref(Ring())
    memory.set_aside()
    new = weakref.ref(Ring())
    end_sessions(1)
    assert old() is not None
    assert new() is None


def test_now_and_then_everything_is_gone_through() -> None:
    old = weakref.ref(Ring())
    memory.set_aside()
    end_sessions(memory.EVERY)
    assert old() is None
    assert gc.get_freeze_count() > 0, "and set aside again"
