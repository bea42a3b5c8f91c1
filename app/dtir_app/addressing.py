"""The address of a task: the parts of its path and its name, numbers apart from text, so that ``layers.3`` and ``layers.4`` agree in text.

>>> split_text("layers.3.mlp_1")
(Part(text='layers.#', number=3), Part(text='.mlp_#', number=1))
>>> split_text("attention")
(Part(text='attention', number=None),)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from dtir_app.store import Store

_NUMBERED = re.compile(r"([^\d]*)(\d{1,9})")
_DEEPEST = 16


class Part(NamedTuple):
    """A piece of an address: text with ``#`` where its number stands."""

    text: str
    number: int | None


@lru_cache(maxsize=65_536)
def split_text(text: str) -> tuple[Part, ...]:
    """The pieces of a text, each ending with its number."""
    made: list[Part] = []
    at = 0
    for match in _NUMBERED.finditer(text):
        made.append(Part(f"{match.group(1)}#", int(match.group(2))))
        at = match.end()
    if at < len(text) or not made:
        made.append(Part(text[at:], None))
    return tuple(made)


def addresses(store: Store, scope: int) -> list[tuple[Part, ...]]:
    """The address of every task of a scope.

    A name counts where the program's author gave it; instruction names of a compiler are numbered through, which says nothing.
    """
    span = store.scopes[scope]
    named = store.format.lower() not in ("hlo", "stablehlo")
    made: list[tuple[Part, ...]] = []
    for task in range(span.first_task, span.last_task):
        parts = [part for text in store.tasks.path[task] for part in split_text(text)]
        if named:
            parts.extend(split_text(store.tasks.name[task]))
        made.append(tuple(parts[:_DEEPEST]))
    return made
