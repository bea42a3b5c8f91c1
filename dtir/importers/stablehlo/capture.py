"""Which values a region uses that are defined around it."""

from __future__ import annotations

import re

from dtir.importers.stablehlo.lists import STRING
from dtir.importers.stablehlo.syntax import Region
from dtir.importers.stablehlo.views import NAME

_USE = re.compile(NAME, re.ASCII)
_STRINGS = re.compile(STRING)
_DEFINED = re.compile(r"(%[\w.$\-]+)\s*(?::(?!:)|=)", re.ASCII)


def captured(region: Region) -> tuple[str, ...]:
    """SSA values used in a region and defined outside of it, each once, in order.

    Names are enough: a name that is visible from outside cannot be given again inside.
    """
    used: dict[str, None] = {}
    defined: set[str] = set()
    stack = [region]
    while stack:
        current = stack.pop()
        for block in current.blocks:
            defined.update(_DEFINED.findall(block.arguments))
            for operation in block.operations:
                defined.update(name for name, _ in operation.results)
                for segment in operation.segments:
                    if "%" in segment:
                        text = _STRINGS.sub('""', segment) if '"' in segment else segment
                        used.update(dict.fromkeys(_USE.findall(text)))
                        if operation.regions:
                            defined.update(_DEFINED.findall(text))
                stack += operation.regions
    return tuple(name for name in used if name.partition("#")[0] not in defined)
