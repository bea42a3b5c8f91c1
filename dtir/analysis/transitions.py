"""What a collective makes of the state of its operand, computed from operand, axes and dims (SEMANTICS 2.2).

| task over axes A | operand along A | result along A |
|---|---|---|
| all_reduce(op) | pending op | replicated; avg divides the scale by the size of A |
| reduce_scatter(op, d) | pending op | split on d, minor |
| all_gather(d) | minor end of dim d | replicated |
| all_to_all(s, c) | minor end of dim c | minor end of dim s |
| broadcast | replicated or per rank | replicated |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from dtir.analysis.abstract import Abstract, Declared, Fill, Surroundings, fills_of, given
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.local import Step, unknown_step
from dtir.analysis.settle import settle
from dtir.analysis.states import (
    Equal,
    Letter,
    Pending,
    PerRank,
    Split,
    State,
    letter_text,
    moved,
    state_text,
)
from dtir.ir.collectives import CollectiveKind
from dtir.ir.expr import Scalar
from dtir.ir.reductions import ReductionKind


@dataclass(frozen=True, slots=True)
class Exchange:
    """One collective, as far as layouts are concerned.

    Args:
        kind: which collective.
        axes: factors of the space whose fibres are the groups, major to minor.
        reduction: operator of a reduction.
        dim: dim of a gather or scatter; None when the task does not say.
        split_dim, concat_dim: dims of an exchange; None when the task does not say.
        vector: parts may differ in size.
        trim: padding is cut off after the task.
        routed: an exchange whose parts are given by counts (expert routing).
        alone: the groups have one member: no axis, or one of size 1.
        listed: the task lists its groups instead of naming axes.
    """

    kind: CollectiveKind
    axes: tuple[str, ...]
    reduction: ReductionKind | None = None
    dim: int | None = None
    split_dim: int | None = None
    concat_dim: int | None = None
    vector: bool = False
    trim: bool = False
    routed: bool = False
    alone: bool = False
    listed: bool = False


IDEMPOTENT = frozenset(
    {ReductionKind.MAX, ReductionKind.MIN, ReductionKind.AVERAGE, ReductionKind.AND, ReductionKind.OR}
)
"""Reductions of equal copies that give the copy."""


def exchange_step(exchange: Exchange, value: Abstract, declared: Declared, around: Surroundings) -> Step:
    """Judge one collective with one operand and one result."""
    if not value.known:
        return unknown_step((declared,), around)
    if around.infer and (value.state.varying or declared.state.varying):
        # Shapes of one rank only: what the value is along these axes is not declared, so nothing contradicts it, but ranks
        # that state different shapes of their own contradict each other.
        differ = not (exchange.vector or exchange.routed or (value.uniform and declared.uniform))
        torn = Deviation(Kind.SHAPE_MISMATCH, exchange.axes, 0, 0, (), note="local")
        return Step((given(declared, around),), (torn,) if differ else ())
    return _Exchange(exchange, value, declared, around).step()


class _Exchange:
    """One judgement; collects deviations on the way."""

    def __init__(self, exchange: Exchange, value: Abstract, declared: Declared, around: Surroundings) -> None:
        self.exchange, self.value, self.declared, self.around = exchange, value, declared, around
        self.axes = exchange.axes
        self.scale = value.scale
        self.found: list[Deviation] = []

    def step(self) -> Step:
        self._check_types()
        if self.found:
            return self._broken()
        if self.exchange.alone:
            return self._alone()
        match self.exchange.kind:
            case CollectiveKind.ALL_REDUCE:
                state = self._reduced()
            case CollectiveKind.REDUCE_SCATTER:
                state = self._scattered()
            case CollectiveKind.ALL_GATHER:
                state = self._gathered()
            case CollectiveKind.ALL_TO_ALL:
                state = self._exchanged()
            case CollectiveKind.BROADCAST:
                state = self._sent()
            case CollectiveKind.COLLECTIVE_PERMUTE:
                state = self.value.state
            case _:
                assert_never(self.exchange.kind)
        return self._broken() if state is None else self._settled(state)

    # -- ends -----------------------------------------------------------------------------------------------------

    def _broken(self) -> Step:
        return Step((replace(given(self.declared, self.around), scale=self.scale),), tuple(self.found))

    def _report(self, kind: Kind, axes: Sequence[str] = (), dims: tuple[int, ...] = (), **texts: str) -> None:
        self.found.append(Deviation(kind, tuple(axes), 0, 0, dims, **texts))

    def _settled(self, state: State, dropped: Kind = Kind.DROPPED) -> Step:
        base = replace(given(self.declared, self.around), scale=self.scale)
        if any(item.kind is not Kind.REDUNDANT for item in self.found):
            return Step((base,), tuple(self.found))
        pending = set(self.value.state.partial)
        if self.exchange.reduction is not None and pending & set(self.axes):
            dropped = Kind.INCOMPLETE_AXES
        outcome = settle(state, self.declared.state, self.around, 0, dropped=dropped)
        self.found += [self._worded(item) for item in outcome.deviations]
        if outcome.deviations:
            return Step((base,), tuple(self.found))
        content = Fill.OTHER if Fill.OTHER in self.value.fills else Fill.ZERO
        fills = fills_of(self.declared.shape, outcome.state, content, self.around)
        weighted = tuple(axis for axis in self.value.weighted if axis not in self.axes)
        return Step((replace(base, state=outcome.state, fills=fills, weighted=weighted),), tuple(self.found))

    def _worded(self, item: Deviation) -> Deviation:
        """Mismatches of results that a collective has a name of its own for."""
        kind = item.kind
        if kind in (Kind.MISMATCH, Kind.ORDER) and set(item.axes) & set(self.axes):
            if self.exchange.kind is CollectiveKind.REDUCE_SCATTER:
                kind = Kind.SCATTER_DIM
            elif self.exchange.kind is CollectiveKind.ALL_TO_ALL:
                kind = Kind.ALL_TO_ALL_DIMS
        return replace(item, kind=kind, operand=0)

    # -- types and sizes --------------------------------------------------------------------------------------------

    def _check_types(self) -> None:
        value, declared = self.value, self.declared
        if value.dtype != declared.dtype:
            self._report(Kind.DTYPE, found=declared.dtype, wanted=value.dtype)
            return
        if self.exchange.vector or self.exchange.routed or not (value.sized and declared.sized):
            return
        if not value.uniform or not declared.uniform:
            self._report(Kind.SHAPE_MISMATCH, self.axes, note="local")
            return
        if not value.state.varying and not declared.state.varying and not self._same_shape(value.shape, declared.shape):
            self._report(
                Kind.SHAPE_MISMATCH, self.axes, found=str(declared.shape), wanted=str(value.shape), note="global"
            )
            return
        moving = (value.state, declared.state) if self.exchange.kind is not CollectiveKind.ALL_REDUCE else ()
        for state in moving:
            for dim, axes in enumerate(state.dims):
                sizes = state.size_of(dim)
                if sizes and len(set(sizes)) > 1 and set(axes) & set(self.axes):
                    shown = ", ".join(map(str, sizes[:16])) + (" ..." if len(sizes) > 16 else "")
                    self._report(Kind.SHAPE_MISMATCH, self.axes, (dim,), found=shown, note="sizes")
                    return

    def _same_shape(self, left: Sequence[Scalar], right: Sequence[Scalar]) -> bool:
        if len(left) != len(right):
            return False
        for one, other in zip(left, right, strict=True):
            a, b = self.around.number(one), self.around.number(other)
            if one != other and a is not None and b is not None and a != b:
                return False
        return True

    # -- reductions -------------------------------------------------------------------------------------------------

    def _reduced(self) -> State | None:
        state, reduction = self.value.state, self.exchange.reduction
        letters = {axis: state.letter(axis) for axis in self.axes}
        if any(axis in self.value.weighted for axis in self.axes) and reduction in (
            ReductionKind.SUM,
            ReductionKind.AVERAGE,
        ):
            self._report(Kind.TOKEN_WEIGHT, [axis for axis in self.axes if axis in self.value.weighted])
            return None
        self._bad_letters(letters)
        wanted = ReductionKind.SUM if reduction is ReductionKind.AVERAGE else reduction
        pending = [axis for axis in self.axes if isinstance(letters[axis], Pending)]
        if pending and state.op is not wanted and not self.found:
            found = reduction.value if reduction is not None else ""
            self._report(Kind.WRONG_REDUCTION, pending, found=found, wanted=state.op.value if state.op else "")
        if self.found:
            return None
        if reduction is ReductionKind.AVERAGE and self.scale is not None:
            self.scale /= self.around.space.count(pending)
        self._equal_copies(letters, reduction, bool(pending))
        return state.without_pending(self.axes)

    def _bad_letters(self, letters: dict[str, Letter]) -> None:
        """Axes along which there is nothing to reduce."""
        split = [axis for axis, letter in letters.items() if isinstance(letter, Split)]
        loose = [axis for axis, letter in letters.items() if isinstance(letter, PerRank)]
        if split:
            dims = tuple(sorted({letter.dim for letter in letters.values() if isinstance(letter, Split)}))
            self._report(Kind.REDUCE_SHARDED, split, dims, found=state_text(self.value.state))
        if loose:
            self._report(Kind.REDUCE_VARYING, loose)

    def _equal_copies(self, letters: dict[str, Letter], reduction: ReductionKind | None, pending: bool) -> None:
        equal = [axis for axis, letter in letters.items() if isinstance(letter, Equal)]
        if not equal or self.value.open:
            return
        if reduction in IDEMPOTENT:
            self._report(Kind.REDUNDANT, equal, note="part" if pending else "copies")
            return
        count = self.around.space.count(equal)
        self._report(Kind.REDUCE_REPLICATED, equal, found=str(count))
        if self.scale is not None:
            self.scale = self.scale * count if reduction is ReductionKind.SUM else None

    def _scattered(self) -> State | None:
        state = self._reduced()
        if state is None or any(item.kind is not Kind.REDUNDANT for item in self.found):
            return None
        dim = self.exchange.dim
        if dim is None:
            dim = self._dim_with(self.declared.state)
            if dim is None:
                return None
        if not 0 <= dim < len(state.dims):
            self._report(Kind.SCATTER_DIM, self.axes, (dim,), note="outside")
            return None
        return state.with_dim(dim, (*state.dims[dim], *self.axes), self.declared.state.size_of(dim))

    # -- gathers and exchanges ----------------------------------------------------------------------------------------

    def _gathered(self) -> State | None:
        state = self.value.state
        if self._pending_in_the_way():
            return None
        letters = [state.letter(axis) for axis in self.axes]
        if all(isinstance(letter, Equal) for letter in letters):
            self._report(Kind.REDUNDANT, self.axes, note="copies")
            return state
        if all(isinstance(letter, PerRank) for letter in letters):
            return self._stacked()
        dim = self.exchange.dim
        if dim is None:
            dim = self._dim_with(state)
            if dim is None:
                return None
        wrong = [axis for axis in self.axes if not _splits(state.letter(axis), dim)]
        if wrong:
            self._report(Kind.GATHER_DIM, wrong, (dim,), found=letter_text(state.letter(wrong[0])))
            return None
        if (rest := moved(state.dims[dim], self.axes)) is None:
            self._report(Kind.ORDER, self.axes, (dim,), found=", ".join(state.dims[dim]), wanted=", ".join(self.axes))
            return None
        if self._padded(dim):
            return None
        return state.with_dim(dim, rest)

    def _stacked(self) -> State | None:
        """A gather of per-rank data: the result has them side by side."""
        state, around = self.value.state, self.around
        left = [around.number(extent) for extent in self.value.shape]
        right = [around.number(extent) for extent in self.declared.shape]
        count = around.space.count(self.axes)
        if None not in left and None not in right and _product(left) * count != _product(right):
            found, wanted = str(_product(right)), str(_product(left) * count)
            self._report(Kind.SHAPE_MISMATCH, self.axes, found=found, wanted=wanted, note="stacked")
            return None
        rest = tuple(axis for axis in state.varying if axis not in self.axes)
        return replace(self.declared.state, varying=rest, partial=state.partial, op=state.op)

    def _exchanged(self) -> State | None:
        state = self.value.state
        if self._pending_in_the_way():
            return None
        if self.exchange.routed or all(isinstance(state.letter(axis), PerRank) for axis in self.axes):
            return replace(self.declared.state, partial=state.partial, op=state.op)
        concat, split = self.exchange.concat_dim, self.exchange.split_dim
        if concat is None:
            concat = self._dim_with(state)
        if split is None and not self.found:
            split = self._dim_with(self.declared.state)
        if self.found or concat is None or split is None:
            return None
        wrong = [axis for axis in self.axes if not _splits(state.letter(axis), concat)]
        outside = not (0 <= concat < len(state.dims) and 0 <= split < len(state.dims))
        if wrong or outside or split == concat:
            note = "outside" if outside else "same" if split == concat else "not_split"
            found = letter_text(state.letter(wrong[0])) if wrong else ""
            self._report(Kind.ALL_TO_ALL_DIMS, wrong or self.axes, (split, concat), found=found, note=note)
            return None
        if (rest := moved(state.dims[concat], self.axes)) is None:
            found = ", ".join(state.dims[concat])
            self._report(Kind.ORDER, self.axes, (concat,), found=found, wanted=", ".join(self.axes))
            return None
        if self._padded(concat):
            return None
        sizes = self.declared.state.size_of(split)
        return state.with_dim(concat, rest).with_dim(split, (*state.dims[split], *self.axes), sizes)

    def _sent(self) -> State | None:
        state = self.value.state
        letters = {axis: state.letter(axis) for axis in self.axes}
        pending = [axis for axis, letter in letters.items() if isinstance(letter, Pending)]
        split = [axis for axis, letter in letters.items() if isinstance(letter, Split)]
        if pending:
            self._report(Kind.DROPPED, pending, note="broadcast")
        if split:
            dims = tuple(sorted({letter.dim for letter in letters.values() if isinstance(letter, Split)}))
            self._report(Kind.BROADCAST_SHARDED, split, dims)
        if self.found:
            return None
        return replace(state, varying=tuple(axis for axis in state.varying if axis not in self.axes))

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _alone(self) -> Step:
        """Groups of one member: nothing is exchanged."""
        outcome = settle(self.value.state, self.declared.state, self.around)
        reduces = self.exchange.reduction is not None or self.exchange.kind is CollectiveKind.BROADCAST
        if self.exchange.listed and (outcome.deviations or (reduces and self.value.state.partial)):
            self._report(Kind.GROUP_SPLIT, note="alone", found="1")
            return self._broken()
        if self.exchange.listed or not reduces:
            self._report(Kind.REDUNDANT, note="alone")
        return self._settled(self.value.state)

    def _pending_in_the_way(self) -> bool:
        lost = [axis for axis in self.axes if isinstance(self.value.state.letter(axis), Pending)]
        if lost:
            op = self.value.state.op
            self._report(Kind.GATHER_PARTIAL, lost, found=op.value if op is not None else "")
        return bool(lost)

    def _padded(self, dim: int) -> bool:
        if self.exchange.trim or self.exchange.vector or self.value.fill(dim) is Fill.NONE:
            return False
        self._report(Kind.PADDING, self.axes, (dim,), found=self.value.fill(dim).value, wanted="gather")
        return True

    def _dim_with(self, state: State) -> int | None:
        """The dim that the axes split in a layout, for a task that names none; reports when extents leave a choice."""
        dims = {dim for dim, axes in enumerate(state.dims) if set(axes) & set(self.axes)}
        extents = [self.around.number(extent) for extent in self.value.shape]
        if len(dims) == 1:
            chosen = next(iter(dims))
            twins = [dim for dim in range(len(extents)) if dim != chosen and _may_equal(extents, dim, chosen)]
            if self.around.infer or not twins:
                return chosen
            # The document states its layouts, yet the task leaves the dim to be found by extent.
            self._report(Kind.AMBIGUOUS, self.axes, (chosen, *twins), found=str(self.value.shape[chosen]))
            return None
        alike = [dim for dim in range(len(extents)) if any(_may_equal(extents, dim, other) for other in range(dim))]
        if alike and not self.around.infer:
            first = next(other for other in range(alike[0]) if _may_equal(extents, alike[0], other))
            self._report(Kind.AMBIGUOUS, self.axes, (first, *alike), found=str(self.value.shape[first]))
            return None
        kinds = {
            CollectiveKind.ALL_GATHER: Kind.GATHER_DIM,
            CollectiveKind.REDUCE_SCATTER: Kind.SCATTER_DIM,
        }
        kind = kinds.get(self.exchange.kind, Kind.ALL_TO_ALL_DIMS)
        self._report(kind, self.axes, tuple(sorted(dims)), note="missing", found=state_text(state))
        return None


def _may_equal(extents: Sequence[int | None], one: int, other: int) -> bool:
    return extents[one] is None or extents[other] is None or extents[one] == extents[other]


def _splits(letter: Letter, dim: int) -> bool:
    return isinstance(letter, Split) and letter.dim == dim


def _product(extents: Sequence[int | None]) -> int:
    count = 1
    for extent in extents:
        count *= extent or 0
    return count
