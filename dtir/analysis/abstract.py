"""What is known of a value while a program is walked: its state, scale, ghosts and padding.

`Declared` is what the program says of a value; `Abstract` is what follows from the tasks, or what is declared where
nothing follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dtir.analysis.blocks import padding_of
from dtir.analysis.divisibility import Facts, whole_number
from dtir.analysis.fibres import Space
from dtir.analysis.states import State, declared_state
from dtir.ir.expr import Scalar
from dtir.ir.values import DistributedValue

Ghosts = tuple[tuple[int, int], ...]
"""Per dim the ghost layers below and above; empty when there are none."""

ONE = Fraction(1)


class Fill(Enum):
    """What the padding of a dim holds."""

    NONE = "no padding"
    ZERO = "zeros"
    OTHER = "something else than zeros"


Fills = tuple[Fill, ...]
"""Per dim; empty when nothing is padded."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What rules need besides the task: the space, facts on symbols, and whether layouts are inferred."""

    space: Space
    facts: Facts
    bindings: Mapping[str, int | float]
    infer: bool

    def number(self, extent: Scalar) -> int | None:
        return whole_number(extent, self.bindings)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a program says of a value.

    Args:
        shape: its type's shape.
        dtype: its element type.
        state: its layout over the space.
        scale: its declared factor.
        ghosts: declared ghost layers.
        corners: whether diagonal ghosts are declared filled.
        sized: False when its shards have no well-defined sizes, so that nothing about sizes is judged.
        uniform: False when ranks declare shapes of their own that differ.
    """

    shape: tuple[Scalar, ...]
    dtype: str
    state: State
    scale: Fraction
    ghosts: Ghosts = ()
    corners: bool = True
    sized: bool = True
    uniform: bool = True


@dataclass(frozen=True, slots=True)
class Abstract:
    """What is known of a value.

    Args:
        shape: its type's shape.
        dtype: its element type.
        state: its state; the declared one where the tasks give no answer.
        scale: the factor by which it exceeds its specification; None when it is not known.
        ghosts: ghost layers that are up to date.
        corners: whether diagonal ghosts are up to date.
        fills: what the padding holds.
        weighted: axes along which it was divided by per-rank numbers.
        known: False below an operator without a rule: nothing is concluded from it.
        sized, uniform: as declared.
        open: True for an input of a document that cannot say "pending": its replicated axes may be meant pending.
    """

    shape: tuple[Scalar, ...]
    dtype: str
    state: State
    scale: Fraction | None = ONE
    ghosts: Ghosts = ()
    corners: bool = True
    fills: Fills = ()
    weighted: tuple[str, ...] = ()
    known: bool = True
    sized: bool = True
    uniform: bool = True
    open: bool = False

    def ghost(self, dim: int) -> tuple[int, int]:
        return self.ghosts[dim] if dim < len(self.ghosts) else (0, 0)

    def fill(self, dim: int) -> Fill:
        return self.fills[dim] if dim < len(self.fills) else Fill.NONE


def declare(value: DistributedValue, space: Space, *, sized: bool = True) -> Declared:
    """What the program says of a value, over the axes of a space."""
    sharding = value.sharding
    ghosts: list[tuple[int, int]] = []
    if sharding.halo is not None:
        ghosts = [(0, 0)] * len(value.type.shape)
        for item in sharding.halo.dims:
            if item.dim < len(ghosts):
                ghosts[item.dim] = (item.before, item.after)
    shapes = {item.shape for item in value.local_shapes}
    return Declared(
        value.type.shape,
        value.type.dtype,
        declared_state(sharding, space),
        Fraction(value.scale.numerator, value.scale.denominator),
        tuple(ghosts),
        sharding.halo.corners if sharding.halo is not None else True,
        sized,
        len(shapes) <= 1,
    )


def fills_of(shape: tuple[Scalar, ...], state: State, content: Fill, around: Surroundings) -> Fills:
    """Where a layout has padding, filled with `content`."""
    found: list[Fill] = []
    for dim, extent in enumerate(shape):
        sizes, number = state.size_of(dim), around.number(extent)
        found.append(content if sizes and number is not None and padding_of(number, sizes) else Fill.NONE)
    return tuple(found) if any(item is not Fill.NONE for item in found) else ()


def given(declared: Declared, around: Surroundings, *, known: bool = True) -> Abstract:
    """A value taken as declared: an input, or what a task with an error leaves behind."""
    return Abstract(
        declared.shape,
        declared.dtype,
        declared.state,
        declared.scale if known else None,
        declared.ghosts,
        declared.corners,
        fills_of(declared.shape, declared.state, Fill.ZERO, around),
        (),
        known,
        declared.sized,
        declared.uniform,
    )
