"""Operators on atoms in bins: a periodic box is cut into bins, each with room for a few atoms.

A field of atoms is an array ``(bins_x, bins_y, bins_z, slots)``; ``kind`` says what sits in a slot, 0 for nothing. Bins are at
least as wide as the cutoff divided by the radius, so that all neighbours of an atom lie within `radius` bins. Distances are to the
nearest image, so that ghosts across the ends of the box need no shift.

| operator | operands | results |
|---|---|---|
| `lennard_jones` | x y z kind | energy of each atom, force x y z, virial xx yy zz xy xz yz |
| `density` | x y z kind | h_i = sum over j of w(r_ij) k_j |
| `message` | x y z kind h | m_i = sum over j of w(r_ij) h_j |
| `readout` | kind h m | energy e = tanh(a m + b h k), de/dm, de/dh |
| `adjoint` | x y z kind p q | g_i = q_i + sum over j of w(r_ij) p_j, with p = de/dm and q = de/dh |
| `message_force` | x y z kind h p g | force x y z, virial xx yy zz xy xz yz |

with w(r) = (1 - (r/c)^2)^3 inside the cutoff c. Pair terms are halved between the two atoms, as usual for virials.
**Source**: Lennard-Jones pair potential and virial as in Allen and Tildesley, *Computer Simulation of Liquids*, 2nd ed., 2017,
sections 1.3 and 2.4; the two-layer potential is our own, the least that needs two exchanges forward and two backward.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from dtir.ops.arithmetic import Arithmetic, Array, Place
from dtir.ops.opdef import LabelRule, Labels, OpCall, OpClass, OpDef, OpError, Reach, Run, Unscaled, elements, no_signs
from dtir.ops.parameters import integers

COORDINATES = 3
VIRIAL = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Components of the virial, in the order of the results."""
_PARAMETERS = frozenset({"radius", "cell", "cutoff", "epsilon", "sigma", "shift", "a", "b"})
_DIMS = ("x", "y", "z", "slot")


def _labels(call: OpCall) -> LabelRule:
    """Bins may be split over ranks, slots of a bin may not."""
    for shape in (*call.operands, *call.results):
        if len(shape) != len(_DIMS):
            raise OpError(f"a field of atoms has 4 dims (bins x, y, z, slots), not {len(shape)}")
    return Labels(tuple(_DIMS for _ in call.operands), tuple(_DIMS for _ in call.results), whole=frozenset({"slot"}))


def _unscaled(call: OpCall) -> Unscaled:
    del call
    return Unscaled()


NOT_AROUND = 5
"""The operand behind the five that `adjoint` reads around its atoms: it is taken where it is."""


def _reach(call: OpCall) -> Reach | None:
    radius = integers(call.attributes.get("radius", (1, 1, 1)), "radius")
    if len(radius) != COORDINATES or any(bins < 0 for bins in radius):
        raise OpError(f"radius is {list(radius)}; wanted are the bins to look at along x, y and z")
    operands = range(NOT_AROUND if len(call.operands) == NOT_AROUND + 1 else len(call.operands))
    return Reach((*radius, 0), True, tuple(operands))


def number(call: OpCall, name: str, default: float) -> float:
    """A parameter as a float.

    Raises:
        OpError: it is no number.
    """
    value = call.attributes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OpError(f"parameter {name} is {value!r}, not a number")
    return float(value)


def _cell(call: OpCall) -> tuple[float, ...]:
    cell = call.attributes.get("cell", (1.0, 1.0, 1.0))
    if not isinstance(cell, list | tuple) or len(cell) != COORDINATES:  # pyright: ignore[reportUnknownArgumentType]
        raise OpError("parameter cell holds the lengths of the box along x, y and z")
    lengths = [number(OpCall((), (), {"cell": length}), "cell", 0.0) for length in cell]  # pyright: ignore[reportUnknownVariableType]
    if any(length <= 0 for length in lengths):
        raise OpError(f"the box is {lengths} long; lengths are positive")
    return tuple(lengths)


class _Pairs:
    """Pairs of an atom in its bin and one in a bin around it: offsets of bins one after the other."""

    def __init__(self, arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall) -> None:
        reach = _reach(call)
        assert reach is not None
        self.xp = arithmetic.xp
        self._fields = operands
        self._radius = reach.radius[:COORDINATES]
        self._cell = _cell(call)
        self._cutoff = number(call, "cutoff", 1.0)
        self._size = tuple(
            extent - 2 * radius for extent, radius in zip(operands[0].shape[:COORDINATES], self._radius, strict=True)
        )

    def centre(self, at: int) -> Array:
        """A field of the atoms themselves, ``(x, y, z, slots)``."""
        return self._window(at, (0,) * COORDINATES)

    def _window(self, at: int, offset: Sequence[int]) -> Array:
        cut = tuple(
            slice(radius + step, radius + step + size)
            for radius, step, size in zip(self._radius, offset, self._size, strict=True)
        )
        return self._fields[at][cut]

    def around(self) -> Iterator[tuple[tuple[Array, Array, Array], Array, tuple[int, ...]]]:
        """For every offset the displacement of each pair, its squared distance (0 where there is no pair), and the offset.

        Arrays are ``(x, y, z, slots, slots of the neighbour)``; displacements point from the neighbour to the atom.
        """
        xp = self.xp
        own_kind = self.centre(3)
        for offset in itertools.product(*(range(-radius, radius + 1) for radius in self._radius)):
            apart: list[Array] = []
            for at, length in enumerate(self._cell):
                along = self.centre(at)[..., :, None] - self._window(at, offset)[..., None, :]
                apart.append(along - length * xp.round(along / length))
            square = apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2
            there = (own_kind[..., :, None] > 0) & (self._window(3, offset)[..., None, :] > 0)
            there = there & (square < self._cutoff**2) & (square > 0)
            yield (apart[0], apart[1], apart[2]), xp.where(there, square, 0.0), offset

    def neighbour(self, at: int, offset: Sequence[int]) -> Array:
        """A field of the neighbours, to go with the pairs of an offset."""
        return self._window(at, offset)[..., None, :]

    def weight(self, square: Array) -> tuple[Array, Array]:
        """w of each pair, and dw/dr divided by r; 0 where there is no pair."""
        inside = self.xp.where(square > 0, 1.0 - square / self._cutoff**2, 0.0)
        return inside**3, -6.0 * inside**2 / self._cutoff**2


def _pair_sums(pairs: _Pairs, forces: Iterator[tuple[tuple[Array, Array, Array], Array]]) -> list[Array]:
    """Force and virial of each atom, from the displacement of each pair and its force divided by the distance."""
    xp = pairs.xp
    zero = xp.zeros(pairs.centre(0).shape, dtype=pairs.centre(0).dtype)
    force, virial = [zero for _ in range(COORDINATES)], [zero for _ in VIRIAL]
    for apart, scaled in forces:
        along = [scaled * one for one in apart]
        force = [total + more.sum(axis=-1) for total, more in zip(force, along, strict=True)]
        virial = [
            total + 0.5 * (apart[a] * along[b]).sum(axis=-1) for total, (a, b) in zip(virial, VIRIAL, strict=True)
        ]
    return [*force, *virial]


def _lennard_jones(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    pairs = _Pairs(arithmetic, operands, call)
    xp = pairs.xp
    epsilon, sigma, shift = number(call, "epsilon", 1.0), number(call, "sigma", 1.0), number(call, "shift", 0.0)
    energy = xp.zeros(pairs.centre(0).shape, dtype=pairs.centre(0).dtype)

    def forces() -> Iterator[tuple[tuple[Array, Array, Array], Array]]:
        nonlocal energy
        for apart, square, _ in pairs.around():
            there = square > 0
            six = xp.where(there, sigma**2 / xp.where(there, square, 1.0), 0.0) ** 3
            energy = energy + 0.5 * xp.where(there, 4 * epsilon * (six**2 - six) - shift, 0.0).sum(axis=-1)
            yield apart, 24 * epsilon * (2 * six**2 - six) / xp.where(there, square, 1.0)

    sums = _pair_sums(pairs, forces())
    return (energy, *sums)


def _density(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (_weighted(_Pairs(arithmetic, operands, call), 3),)


def _message(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    return (_weighted(_Pairs(arithmetic, operands, call), 4),)


def _adjoint(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    pairs = _Pairs(arithmetic, operands, call)
    return (operands[NOT_AROUND] + _weighted(pairs, 4),)


def _weighted(pairs: _Pairs, at: int) -> Array:
    total = pairs.xp.zeros(pairs.centre(at).shape, dtype=pairs.centre(0).dtype)
    for _, square, offset in pairs.around():
        total = total + (pairs.weight(square)[0] * pairs.neighbour(at, offset)).sum(axis=-1)
    return total


def _readout(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    kind, first, second = operands
    xp = arithmetic.xp
    a, b = number(call, "a", 0.5), number(call, "b", 0.25)
    there = xp.where(kind > 0, 1.0, 0.0)
    energy = xp.tanh(a * second + b * first * kind) * there
    slope = (1.0 - energy**2) * there
    return energy, a * slope, b * kind * slope


def _message_force(arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place) -> tuple[Array, ...]:
    del place
    pairs = _Pairs(arithmetic, operands, call)
    kind, h, p, g = (pairs.centre(at)[..., :, None] for at in (3, 4, 5, 6))

    def forces() -> Iterator[tuple[tuple[Array, Array, Array], Array]]:
        for apart, square, offset in pairs.around():
            kind_j, h_j, p_j, g_j = (pairs.neighbour(at, offset) for at in (3, 4, 5, 6))
            through = p * h_j + p_j * h + g * kind_j + g_j * kind
            yield apart, -pairs.weight(square)[1] * through

    return tuple(_pair_sums(pairs, forces()))


def _pair_flops(call: OpCall) -> int | float:
    """Some forty operations a pair of slots in bins next to each other."""
    reach = _reach(call)
    assert reach is not None
    count = 1
    for radius in reach.radius[:COORDINATES]:
        count *= 2 * radius + 1
    slots = call.results[0][-1]
    return 40 * count * elements(call.results[0]) * (slots if isinstance(slots, int | float) else 1)


def _pair_op(name: str, summary: str, operands: int, run: Run) -> OpDef:
    return OpDef(
        name, summary, (operands, operands), OpClass.NONLINEAR, _labels, _unscaled, run, no_signs,
        keeps_zero=True, reach=_reach, flops=_pair_flops, parameters=_PARAMETERS,
    )  # fmt: skip


_OPS: tuple[OpDef, ...] = (
    _pair_op("lennard_jones", "energy, force and virial of each atom", 4, _lennard_jones),
    _pair_op("density", "weighted kinds of the neighbours of each atom", 4, _density),
    _pair_op("message", "weighted features of the neighbours of each atom", 5, _message),
    _pair_op("adjoint", "what a change of each atom's feature changes in the energy", 6, _adjoint),
    _pair_op("message_force", "force and virial of each atom through both layers", 7, _message_force),
    OpDef("readout", "energy of each atom and its derivatives by the features", (3, 3), OpClass.NONLINEAR, _labels,
          _unscaled, _readout, no_signs, keeps_zero=True, parameters=_PARAMETERS),
)  # fmt: skip

OPS: tuple[tuple[str, OpDef], ...] = tuple(("atoms", operator) for operator in _OPS)
