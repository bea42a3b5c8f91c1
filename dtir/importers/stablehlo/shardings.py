"""The shardings that attributes of values and operations state, Shardy's and GSPMD's, as the HLO importer has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.shardings import Sharding, Subgroup, TupleSharding, Uniform
from dtir.importers.stablehlo import gspmd
from dtir.importers.stablehlo.sdy import SdyMesh, parse_list, parse_sharding, to_hlo
from dtir.importers.stablehlo.values import frontend

SHARDING_KEYS = ("sdy.sharding", "mhlo.sharding")
FRONTEND = "mhlo.frontend_attributes"
_MESH_NAMES = re.compile(r'@(?:([\w.$\-]+)|"((?:[^"\\\n]|\\.)*)")')


class ShardingReader:
    """Reads shardings of one part; equal texts give the same objects.

    `faulty` are offsets of what breaks a rule of its own and has been reported; `used` says per function how often it speaks
    of which mesh; `function` is the one that is being read.
    """

    def __init__(self, meshes: Mapping[str, SdyMesh], aliases: Mapping[str, str], problems: Problems) -> None:
        self.meshes = meshes
        self.faulty: set[int] = set()
        self.function = ""
        self.used: dict[str, dict[str, int]] = {}
        self._aliases = aliases
        self._problems = problems
        self._known: dict[tuple[str, tuple[str, ...]], Sharding | None] = {}

    def of(self, attributes: Mapping[str, str], count: int, manual: tuple[str, ...], offset: int) -> Sharding | None:
        """The sharding among attributes.

        Args:
            attributes: of a value, or of an operation.
            count: how many results the operation has, 1 for a value.
            manual: axes that manual computations around it bind.
            offset: where faults are reported.
        """
        for key in SHARDING_KEYS:
            text = attributes.get(key)
            if text is None and key == "sdy.sharding" and FRONTEND in attributes:
                # XLA carries Shardy's attributes through passes that do not know them as strings among these.
                text = dict(frontend(attributes[FRONTEND])).get("xla.sdy.sharding")
            if text is None:
                continue
            text = self._aliases.get(text, text)
            known = (text, manual)
            if known not in self._known:
                self._known[known] = self._read(key, text, manual, offset)
            found = self._known[known]
            self.note(text)
            if isinstance(found, TupleSharding) and count == 1 and len(found.elements) == 1:
                return found.elements[0]
            return found
        return None

    def _read(self, key: str, text: str, manual: tuple[str, ...], offset: int) -> Sharding | None:
        try:
            if key == "mhlo.sharding":
                plain = text.strip()[1:-1]
                return gspmd.parse(plain) if plain else None
            if "sharding_per_value" in text:
                return joined([to_hlo(one, self.meshes, manual) for one in parse_list(text)], text)
            return to_hlo(parse_sharding(text), self.meshes, manual)
        except HloSyntaxError as error:
            if offset not in self.faulty:
                code = error.code if error.code.startswith("mlir.") else "mlir.sharding"
                self._problems.error(code, f"{key}: {error.message}", offset)
            return None

    def note(self, text: str) -> None:
        """Note which meshes a text of the current function speaks of."""
        used = self.used.setdefault(self.function, {})
        for plain, quoted in _MESH_NAMES.findall(text):
            name = plain or quoted
            if name in self.meshes:
                used[name] = used.get(name, 0) + 1


def joined(parts: Sequence[Sharding | None], text: str | None = None) -> TupleSharding:
    """Shardings of several values; one without gets the state that nothing is said of."""
    found = tuple(Uniform(Subgroup.UNKNOWN, "{unknown}") if part is None else part for part in parts)
    return TupleSharding(found, text or "{" + ", ".join(part.text for part in found) + "}")
