"""Values for free symbols: the smallest that keep all splits legal, hold the assumptions, and differ from each other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from dtir.ir import DistributedTaskIR, DistributedValue, Symbol, free_symbols
from dtir.verify.value.build import NotConcrete
from dtir.verify.value.grid import Grid

_TRIED = 400
_FACT = re.compile(r"\s*(?:[a-z]+\.)?(\w+)\s*(?:%\s*(\d{1,9})\s*)?(==|!=|<=|>=|<|>)\s*(?:([a-z]+\.)?(\w+))\s*")


def bind_symbols(program: DistributedTaskIR, grid: Grid, values: Iterable[DistributedValue]) -> dict[str, int | float]:
    """Bindings for every symbol of the values: the program's own, and chosen ones for the rest.

    Raises:
        NotConcrete: no value up to some hundred times the smallest holds all assumptions.
    """
    bindings: dict[str, int | float] = dict(program.bindings)
    multiples: dict[Symbol, int] = {}
    for value in values:
        for dim, extent in enumerate(value.type.shape):
            if isinstance(extent, (int, float)):
                continue
            axes = value.sharding.dimension_axes[dim] if dim < len(value.sharding.dimension_axes) else ()
            count = grid.members(axes)
            for symbol in free_symbols(extent):
                multiples[symbol] = math.lcm(multiples.get(symbol, 1), count)
    taken: set[int | float] = set()
    for symbol in sorted(multiples, key=lambda item: (item.axis.value, item.name)):
        key = f"{symbol.axis.value}.{symbol.name}"
        if any(name in bindings for name in (key, symbol.name)):
            continue
        chosen = _choose(symbol.name, multiples[symbol], program.assume, bindings, taken)
        bindings[key] = bindings[symbol.name] = chosen
        taken.add(chosen)
    return bindings


def _choose(
    name: str, multiple: int, assume: Iterable[str], bindings: Mapping[str, int | float], taken: set[int | float]
) -> int:
    facts = [fact for text in assume if (fact := _FACT.fullmatch(text)) and fact[1] == name]
    for fact in facts:
        if fact[2] and fact[3] == "==" and fact[5] == "0" and int(fact[2]) > 0:
            multiple = math.lcm(multiple, int(fact[2]))
    for times in range(2, _TRIED):
        chosen = times * multiple
        if chosen not in taken and all(_holds(fact, chosen, bindings) for fact in facts):
            return chosen
    raise NotConcrete(f"no value of symbol {name} up to {_TRIED * multiple} holds its assumptions")


def _holds(fact: re.Match[str], value: int, bindings: Mapping[str, int | float]) -> bool:
    left = value % int(fact[2]) if fact[2] and int(fact[2]) else value
    other = fact[5]
    right = int(other) if other.isascii() and other.isdigit() else bindings.get(other)
    if right is None:
        return True  # about a symbol that is chosen later, and then checked there if it is on the left
    match fact[3]:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<=":
            return left <= right
        case ">=":
            return left >= right
        case "<":
            return left < right
        case _:
            return left > right
