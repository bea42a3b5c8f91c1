"""The tree of modules: what each does itself, without its children, of whose communication the counts of a module are the sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtir.importers.rank_set.plain import count_of, mapping, sequence, text_of

FORWARD, BACKWARD = "forward", "backward"

MOST_CALLS = 100_000
"""Calls of one collective by one module; a larger number is written by no run that was watched call by call."""


@dataclass(frozen=True, slots=True)
class Module:
    """One module.

    Args:
        name: its full name.
        kind: its class, as printed.
        parameters: names and placements.
        calls: per phase the collectives that it calls itself, with their number.
        operations: per phase its other operations, with shapes and placements of their inputs where DTensor ran them.
        counted: per phase the calls of the module and its children together, as the file has them.
    """

    name: str
    kind: str
    parameters: tuple[tuple[str, str], ...]
    calls: Mapping[str, Counter[str]] = field(repr=False)
    operations: Mapping[str, Sequence[Mapping[str, Any]]] = field(repr=False)
    counted: Mapping[str, Counter[str]] = field(repr=False)


def read_modules(root: Mapping[str, Any]) -> tuple[list[Module], int]:
    """The modules, each before its children, and how many calls had an absurd number."""
    found: list[Module] = []
    absurd = 0
    stack: list[Mapping[str, Any]] = [root]
    while stack:
        item = stack.pop()
        children = [mapping(child) for child in sequence(item.get("children"))]
        stack += reversed(children)
        counted: dict[str, Counter[str]] = {}
        own: dict[str, Counter[str]] = {}
        for phase in (FORWARD, BACKWARD):
            counted[phase], wrong = _counts(item, phase)
            absurd += wrong
            own[phase] = Counter(counted[phase])
            for child in children:
                own[phase].subtract(_counts(child, phase)[0])
            own[phase] = +own[phase]
        found.append(
            Module(
                text_of(item.get("fqn")) or "module",
                text_of(item.get("module_type")),
                tuple(_pairs(item.get("parameters"))),
                own,
                {phase: [mapping(value) for value in sequence(item.get(f"operations_{phase}"))] for phase in own},
                counted,
            )
        )
    return found, absurd


def _counts(item: Mapping[str, Any], phase: str) -> tuple[Counter[str], int]:
    found: Counter[str] = Counter()
    wrong = 0
    for value in sequence(item.get(f"collectives_{phase}")):
        pair = sequence(value)
        name = text_of(pair[0]) if len(pair) == 2 else ""
        number = count_of(pair[1]) if len(pair) == 2 else None
        if not name or number is None or number > MOST_CALLS:
            wrong += 1
            continue
        found[name] += number
    return found, wrong


def _pairs(value: object) -> list[tuple[str, str]]:
    pairs = [sequence(item) for item in sequence(value)]
    return [(text_of(pair[0]), text_of(pair[1])) for pair in pairs if len(pair) == 2 and text_of(pair[0])]
