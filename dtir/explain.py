"""Looking up what a diagnostic code means, over all layers.

>>> explain("rank.unknown").hint
'use ranks from 0 to the size of the mesh minus 1, or enlarge the mesh'
>>> explain("rank.unknwon") is None, similar_codes("rank.unknwon")[0]
(True, 'rank.unknown')
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from dtir.schema.catalogue import CodeEntry

CATALOGUES: dict[str, str] = {
    "schema": "dtir.schema.codes",
    "ir": "dtir.ir.codes",
    "importers": "dtir.importers.codes",
    "hlo": "dtir.importers.hlo.codes",
    "stablehlo": "dtir.importers.stablehlo.codes",
    "traces": "dtir.importers.rank_set.codes",
    "sharding tables": "dtir.importers.sharding_table.codes",
    "comm debug": "dtir.importers.comm_debug.codes",
    "verify": "dtir.verify.catalogue",
    "value": "dtir.verify.value.codes",
    "yaml": "dtir.importers.yaml.codes",
    "spec": "dtir.spec.codes",
    "cost": "dtir.cost.codes",
    "execute": "dtir.execute.codes",
    "launch": "dtir.execute.launch_codes",
    "check": "dtir.check.codes",
    "cli": "dtir.cli.codes",
}
"""The modules whose ``CODES`` are gathered, in the order of the layers. A layer that reports findings adds its own."""


@cache
def catalogue() -> Mapping[str, CodeEntry]:
    """Every code that this version can report, with its entry, in layer order.

    Raises:
        ValueError: two entries for one code.
    """
    found: dict[str, CodeEntry] = {}
    for name in CATALOGUES.values():
        entries: tuple[CodeEntry, ...] = import_module(name).CODES
        for entry in entries:
            if entry.code in found:
                raise ValueError(f"{entry.code} has two entries, the second in {name}")
            found[entry.code] = entry
    return MappingProxyType(found)


def explain(code: str) -> CodeEntry | None:
    """The entry of a code; None when there is no such code."""
    return catalogue().get(code)


def similar_codes(code: str, count: int = 3) -> list[str]:
    """Codes that read like a mistyped one, best first; codes of the same family when none does."""
    from difflib import get_close_matches

    close = get_close_matches(code, catalogue(), n=count, cutoff=0.6)
    family = code.split(".", 1)[0]
    return close or [known for known in catalogue() if known.split(".", 1)[0] == family][:count]
