"""The address of a task: the parts of its path and its name, numbers apart from text, so that ``layers.3`` and ``layers.4`` agree in text.

>>> split_text("layers.3.mlp_1")
(Part(text='layers.#', number=3), Part(text='.mlp_#', number=1))
>>> split_text("attention")
(Part(text='attention', number=None),)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dtir_app.store import Store

_NUMBER = re.compile(r"(\d{1,9})", re.ASCII)
_DEEPEST = 16


class Part(NamedTuple):
    """A piece of an address: text with ``#`` where its number stands."""

    text: str
    number: int | None


def split_text(text: str) -> tuple[Part, ...]:
    """The pieces of a text, each ending with its number."""
    pieces = _NUMBER.split(text)
    made = [Part(f"{before}#", int(number)) for before, number in zip(pieces[:-1:2], pieces[1::2], strict=True)]
    if pieces[-1] or not made:
        made.append(Part(pieces[-1], None))
    return tuple(made)


def names_tell(store: Store) -> bool:
    """Whether names were given by an author. A compiler numbers its instructions through, which says nothing."""
    return store.format.lower() not in ("hlo", "stablehlo")


def addresses(store: Store, scope: int) -> list[tuple[Part, ...]]:
    """The address of every task of a scope.

    A name counts where the program's author gave it.
    """
    span = store.scopes[scope]
    named = names_tell(store)
    made: list[tuple[Part, ...]] = []
    paths: dict[tuple[str, ...], list[Part]] = {}
    for task in range(span.first_task, span.last_task):
        path = store.tasks.path[task]
        if path not in paths:
            paths[path] = [part for text in path for part in split_text(text)]
        parts = list(paths[path])
        if named:
            parts.extend(split_text(store.tasks.name[task]))
        made.append(tuple(parts[:_DEEPEST]))
    return made
