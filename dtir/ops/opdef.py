"""What an operator is: one `OpDef` per operator, the only place that knows it.

An `OpDef` answers for one call (`OpCall`: shapes and attributes):

* which dims of operands and results are the same (labels, einsum style), which labels are contracted and by which
  fold, and which must be whole on every rank;
* what it does to a pending reduction (`OpClass`), to a scale (`ScaleLaw`) and to padding;
* how to evaluate it over an array module, in floats or modulo a prime, and what that costs in flops and bytes.

Whoever reasons about programs asks these questions and names no operator.

>>> from dtir.ops import require_op
>>> rule = require_op("einsum").labels(OpCall(((4, 8), (8, 6)), ((4, 6),), {"spec": "bi,io->bo"}))
>>> rule.operands, rule.results, dict(rule.folds)
((('b', 'i'), ('i', 'o')), (('b', 'o'),), {'i': <Fold.SUM: 'sum'>})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from dtir.ir.expr import Scalar
from dtir.ops.arithmetic import Arithmetic, Array, Place

Shape: TypeAlias = tuple[Scalar, ...]
Label: TypeAlias = str | None
"""The name of a dim within one call; None: a dim of extent 1 that is broadcast, or the unit left by a reduction."""


class OpError(ValueError):
    """The call does not fit the operator: wrong number of operands, shapes that do not meet, an attribute missing or unusable."""


class Fold(Enum):
    """How a contracted label is folded."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"
    AND = "and"
    OR = "or"


class OpClass(Enum):
    """What an operator does to a pending reduction (the rows of the table of SEMANTICS 2.3).

    * `LINEAR`: one data operand, f(x + y) = f(x) + f(y).
    * `MULTILINEAR`: linear in each operand alone.
    * `ADDITIVE`: linear in all data operands together (add, concat, select).
    * `MONOTONE`: one data operand, element by element, order preserving or reversing (see `OpDef.signs`).
    * `ORDER`: elementwise max or min of operands.
    * `EXTREMUM`: max or min over dims.
    * `NONLINEAR`: anything else that is known.
    * `SOURCE`: no operand.

    Operands in `OpDef.nonlinear_operands` (a mask, an index, a divisor) may never be pending, whatever the class.
    """

    LINEAR = "linear"
    MULTILINEAR = "multilinear"
    ADDITIVE = "additive"
    MONOTONE = "monotone"
    ORDER = "order"
    EXTREMUM = "extremum"
    NONLINEAR = "nonlinear"
    SOURCE = "source"


class SourceKind(Enum):
    """What an operator without data operands makes."""

    POSITION = "position"
    RANDOM = "random"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class OpCall:
    """One use of an operator.

    Args:
        operands: shapes of the operands, in operand order; extents are ints or symbolic scalars.
        results: shapes of the results.
        attributes: parameters by their plain names (``spec``, ``dims``, ``c``; not ``op.spec``).
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def reads_ghosts(self) -> bool:
        """True when the call takes ghost cells as if they were its own (``include_halo``)."""
        return self.attributes.get("include_halo") is True

    @property
    def introduced(self) -> bool:
        """True when the task exists only in the distributed program: the undivided program has the identity in its place."""
        return self.attributes.get("intro") is True


@dataclass(frozen=True, slots=True)
class Labels:
    """Which dims are the same.

    Args:
        operands: one label a dim for every operand.
        results: the same for every result.
        folds: the labels that occur in operands and in no result, with how they are folded.
        whole: labels that the operator cannot work on in parts: a split of them is never legal (softmax dim, sort dim, joined dim).
    """

    operands: tuple[tuple[Label, ...], ...]
    results: tuple[tuple[Label, ...], ...]
    folds: Mapping[str, Fold] = field(default_factory=lambda: MappingProxyType({}))
    whole: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DimGroup:
    """Dims of a reshape that belong together: the products of their extents are equal, and no smaller group has that."""

    operand_dims: tuple[int, ...]
    result_dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Regroup:
    """A reshape: groups of dims in order; unit dims without a partner stand in no group."""

    groups: tuple[DimGroup, ...]


LabelRule: TypeAlias = Labels | Regroup


@dataclass(frozen=True, slots=True)
class Degrees:
    """Homogeneous: scaling operand i by s scales the result by ``s ** degrees[i]``."""

    degrees: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class EqualScales:
    """These operands (data; not a mask or an index) must have one scale, which is the result's; the others must have scale 1."""

    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unscaled:
    """Not homogeneous: every operand must have scale 1."""


@dataclass(frozen=True, slots=True)
class ScaleFree:
    """The result does not depend on the scale of its operands (or there are none): scale 1."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Multiplication by a constant: the result's scale is ``factor / reference`` times the operand's.

    `reference` is the constant of the undivided program: 1 when the task is introduced by the division.
    """

    factor: Fraction
    reference: Fraction


ScaleLaw: TypeAlias = Degrees | EqualScales | Unscaled | ScaleFree | Factor


@dataclass(frozen=True, slots=True)
class SliceAxes:
    """Each rank keeps its own block along `dim`: replicated becomes split, without communication."""

    axes: tuple[str, ...]
    dim: int


@dataclass(frozen=True, slots=True)
class MaskAxes:
    """Coordinate 0 keeps the value, the others get zeros: replicated becomes pending sum, without communication."""

    axes: tuple[str, ...]


Transition: TypeAlias = SliceAxes | MaskAxes


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an operator reads around an element.

    Args:
        radius: per dim of the operands that are read so.
        diagonal: whether along several dims at once.
        operands: which operands are read so, by position; they have one shape.
    """

    radius: tuple[int, ...]
    diagonal: bool
    operands: tuple[int, ...] = (0,)


Run: TypeAlias = Callable[[Arithmetic, Sequence[Array], OpCall, Place], tuple[Array, ...]]


def _no_transition(call: OpCall) -> Transition | None:
    del call
    return None


def _no_reach(call: OpCall) -> Reach | None:
    del call
    return None


def _all_positive(call: OpCall) -> tuple[int, ...]:
    return (1,) * len(call.operands)


def no_signs(call: OpCall) -> tuple[int, ...]:
    """Neither maximum nor minimum of an operand survives: elements are added up."""
    return (0,) * len(call.operands)


def _one_flop_an_element(call: OpCall) -> int | float:
    return sum(elements(shape) for shape in call.results)


T = TypeVar("T")


def _guarded(answer: Callable[[OpCall], T], operator: OpDef) -> Callable[[OpCall], T]:
    def checked(call: OpCall) -> T:
        operator.check_call(call)
        found = answer(call)
        if isinstance(found, Labels) and len(found.results) != len(call.results):
            raise OpError(f"{operator.name} has {len(found.results)} results, the task {len(call.results)}")
        return found

    return checked


@dataclass(frozen=True, slots=True)
class OpDef:
    """One operator.

    Args:
        name: its name in programs (dialect ``core``).
        summary: one line on what it computes.
        arity: least and greatest number of operands (None: any number).
        op_class: see `OpClass`.
        labels: the label rule of a call.
        scale: the scale law of a call.
        run: evaluation; None when the operator has a rule but cannot be evaluated.
        signs: per operand +1 when the operator commutes with the elementwise maximum of it, -1 when it makes a minimum of it,
            0 when neither (an operator that adds elements up).
        nonlinear_operands: operands that choose or divide, so that they may never be pending.
        polynomial: True when `run` is exact modulo a prime (sums, products and rational constants only).
        keeps_zero: True when zeros in every data operand give zero, so that zero padding stays zero.
        source: what it makes from nothing, for the class `OpClass.SOURCE`.
        transition: what it does to the layout besides its labels.
        reach: how far it reads around an element.
        flops: floating point operations of a call.
        parameters: the attribute names that it takes.
    """

    name: str
    summary: str
    arity: tuple[int, int | None]
    op_class: OpClass
    labels: Callable[[OpCall], LabelRule]
    scale: Callable[[OpCall], ScaleLaw]
    run: Run | None = None
    signs: Callable[[OpCall], tuple[int, ...]] = _all_positive
    nonlinear_operands: tuple[int, ...] = ()
    polynomial: bool = False
    keeps_zero: bool = False
    source: SourceKind | None = None
    transition: Callable[[OpCall], Transition | None] = _no_transition
    reach: Callable[[OpCall], Reach | None] = _no_reach
    flops: Callable[[OpCall], int | float] = _one_flop_an_element
    parameters: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        # Every answer about a call checks first that it is one: rules may then take the number of operands for granted.
        object.__setattr__(self, "labels", _guarded(self.labels, self))
        object.__setattr__(self, "scale", _guarded(self.scale, self))
        object.__setattr__(self, "transition", _guarded(self.transition, self))
        object.__setattr__(self, "reach", _guarded(self.reach, self))
        object.__setattr__(self, "flops", _guarded(self.flops, self))

    def check_call(self, call: OpCall) -> None:
        """Raise when the operator is not used with that many operands, or without a result.

        Raises:
            OpError: with the numbers.
        """
        self.check_arity(len(call.operands))
        if not call.results:
            raise OpError(f"{self.name} has no result")

    def check_arity(self, count: int) -> None:
        """Raise when the operator does not take that many operands.

        Raises:
            OpError: with both numbers.
        """
        least, most = self.arity
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            raise OpError(f"{self.name} takes {wanted} operands, got {count}")

    def traffic_bytes(self, call: OpCall, item_bytes: Sequence[int | float]) -> int | float:
        """Bytes read and written when every operand and result passes memory once.

        Args:
            item_bytes: bytes of one element, operands first, then results.
        """
        shapes = (*call.operands, *call.results)
        return sum(elements(shape) * size for shape, size in zip(shapes, item_bytes, strict=True))


def elements(shape: Shape) -> int | float:
    """Number of elements of a concrete shape.

    Raises:
        OpError: an extent is symbolic.
    """
    count: int | float = 1
    for extent in shape:
        if not isinstance(extent, (int, float)):
            raise OpError(f"extent {extent} has no value yet: bind its symbols first")
        count *= extent
    return count
