"""A system of atoms in a periodic box, and its bins: the arrays that models run on.

>>> system = System((9.0, 9.0, 9.0), [[0.5, 0.5, 0.5], [8.9, 0.5, 0.5]], [1, 1], cutoff=2.0)
>>> system.bins, system.slots
((4, 4, 4), 1)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dtir.spec.errors import SpecError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

AXES = ("x", "y", "z")
LEAST_BINS = 3
"""Along each length of the box: with fewer, a bin would be its own neighbour on both sides and pairs would count twice."""
MOST_ATOMS = 1_000_000
MOST_BINS = 4_000_000


@dataclass(frozen=True, eq=False)
class System:
    """Atoms in a periodic box.

    Args:
        cell: lengths of the box along x, y and z.
        positions: ``(atoms, 3)``; folded into the box.
        kinds: ``(atoms,)`` whole numbers from 1 on (atomic numbers, say).
        cutoff: how far interactions reach; also the least width of a bin.
        name: for people.

    Raises:
        SpecError: naming the field: lengths or cutoff not positive, arrays that do not fit, a box shorter than three cutoffs,
            a kind below 1.
    """

    cell: tuple[float, float, float]
    positions: Floats
    kinds: Ints
    cutoff: float
    name: str = "system"
    bins: tuple[int, int, int] = field(init=False)
    slots: int = field(init=False)
    places: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cell = np.asarray(self.cell, np.float64)
        positions = np.asarray(self.positions, np.float64).reshape(-1, 3) if len(self.positions) else np.empty((0, 3))
        kinds = np.asarray(self.kinds)
        if cell.shape != (3,) or not np.isfinite(cell).all() or (cell <= 0).any():
            raise SpecError("cell", f"cell is {list(self.cell)}; wanted are three positive lengths", "spec.system")
        if not np.isfinite(self.cutoff) or self.cutoff <= 0:
            raise SpecError("cutoff", f"cutoff is {self.cutoff}, not a positive length", "spec.system")
        if len(kinds) != len(positions):
            raise SpecError("kinds", f"{len(kinds)} kinds for {len(positions)} atoms", "spec.system")
        if len(kinds) and (kinds.dtype.kind not in "iu" or int(kinds.min()) < 1):
            raise SpecError("kinds", "kinds are whole numbers from 1 on: 0 stands for an empty slot", "spec.system")
        if not np.isfinite(positions).all():
            raise SpecError("positions", "a position is not finite", "spec.system")
        counts = np.floor(cell / self.cutoff)
        if (counts < LEAST_BINS).any():
            axis = int(np.argmin(counts))
            raise SpecError(
                "cutoff",
                f"the box is {cell[axis]:g} long along {AXES[axis]}, less than three cutoffs of {self.cutoff:g}",
                "spec.system",
            )
        if counts.prod() > MOST_BINS:
            raise SpecError(
                "cutoff",
                f"cutoff {self.cutoff:g} cuts the box into {counts.prod():.3g} bins, more than {MOST_BINS:,}",
                "spec.system",
            )
        bins = tuple(int(count) for count in counts)
        folded = positions - cell * np.floor(positions / cell)
        places = np.minimum((folded / (cell / counts)).astype(np.int64), np.array(bins) - 1)
        flat = _flat(places, bins)
        object.__setattr__(self, "cell", tuple(float(length) for length in cell))
        object.__setattr__(self, "positions", folded)
        object.__setattr__(self, "kinds", kinds.astype(np.int64))
        object.__setattr__(self, "bins", bins)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "slots", max(1, int(np.bincount(flat).max(initial=0))) if len(flat) else 1)

    @property
    def atoms(self) -> int:
        """Number of atoms."""
        return len(self.kinds)

    @property
    def volume(self) -> float:
        """Of the box."""
        return self.cell[0] * self.cell[1] * self.cell[2]

    @property
    def slot_of(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Bin and slot of every atom: the index into a field of bins."""
        flat = _flat(self.places, self.bins)
        order = np.argsort(flat, kind="stable")
        sorted_bins = flat[order]
        first = np.searchsorted(sorted_bins, sorted_bins, side="left")
        slots = np.empty(self.atoms, np.int64)
        slots[order] = np.arange(self.atoms) - first
        return self.places[:, 0], self.places[:, 1], self.places[:, 2], slots

    def fields(self) -> dict[str, Floats]:
        """``x``, ``y``, ``z`` and ``kind`` as fields of bins, empty slots 0."""
        shape = (*self.bins, self.slots)
        made = {name: np.zeros(shape) for name in (*AXES, "kind")}
        index = self.slot_of
        for axis, name in enumerate(AXES):
            made[name][index] = self.positions[:, axis]
        made["kind"][index] = self.kinds
        return made

    def rows(self, fields: Sequence[Floats]) -> Floats:
        """Fields of bins as one array ``(atoms, fields)``, in the order of the atoms."""
        index = self.slot_of
        return np.stack([array[index] for array in fields], axis=-1)


def _flat(places: Ints, bins: tuple[int, ...]) -> Ints:
    """The number of each atom's bin, x slowest."""
    return (places[:, 0] * bins[1] + places[:, 1]) * bins[2] + places[:, 2]


_KEYS = ("cell", "positions", "kinds", "cutoff", "name", "model", "grid", "ranks", "ghost_width", "parameters")


def read_system(path: str | Path) -> tuple[System, dict[str, Any]]:
    """A system from a JSON file: ``cell``, ``positions``, ``kinds``, ``cutoff``, and how to run it.

    Returns:
        The system, and what else the file says: ``model``, ``grid`` or ``ranks``, ``ghost_width``, ``parameters``.

    Raises:
        SpecError: naming the field that is missing, unknown or of another form.
        OSError: the file cannot be read.
    """
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise SpecError("system", f"{path} is no JSON text: {error}", "spec.system") from error
    if not isinstance(given, dict):
        raise SpecError("system", f"{path} holds {type(given).__name__}, not an object", "spec.system")
    table = cast("dict[str, Any]", given)
    for key in table:
        if key not in _KEYS:
            raise SpecError(key, f"a system has no field {key!r}; it has {', '.join(_KEYS)}", "spec.system")
    for key in ("cell", "positions", "kinds", "cutoff"):
        if key not in table:
            raise SpecError(key, f"the system lacks {key!r}", "spec.system")
    cell = _numbers(table, "cell", 3)
    cutoff = table["cutoff"]
    if isinstance(cutoff, bool) or not isinstance(cutoff, int | float):
        raise SpecError("cutoff", f"cutoff is {cutoff!r}, not a number", "spec.system")
    rows = table["positions"]
    if not isinstance(rows, list) or len(cast("list[Any]", rows)) > MOST_ATOMS:
        raise SpecError("positions", f"positions is no list of at most {MOST_ATOMS:,} rows", "spec.system")
    positions = [_numbers({"positions": row}, "positions", 3) for row in cast("list[Any]", rows)]
    kinds = table["kinds"]
    if not isinstance(kinds, list) or any(type(kind) is not int for kind in cast("list[Any]", kinds)):
        raise SpecError("kinds", "kinds is no list of whole numbers", "spec.system")
    name = table.get("name", Path(path).stem)
    system = System(
        (cell[0], cell[1], cell[2]),
        np.array(positions, np.float64),
        np.array(kinds, np.int64),
        float(cutoff),
        str(name),
    )
    more = {key: table[key] for key in ("model", "grid", "ranks", "ghost_width", "parameters") if key in table}
    return system, more


def _numbers(table: Mapping[str, Any], name: str, count: int) -> list[float]:
    row = table[name]
    numbers = cast("list[Any]", row) if isinstance(row, list) else []
    if len(numbers) != count or any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
        raise SpecError(name, f"{name} holds {row!r}; wanted are {count} numbers", "spec.system")
    return [float(one) for one in numbers]
