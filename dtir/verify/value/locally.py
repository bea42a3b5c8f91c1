"""Local tasks: the undivided operator, and the same operator on the block of every rank."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from dtir.ops import Labels, OpCall, OpDef, OpError, Place, Reach, SourceKind
from dtir.ops.arithmetic import Arithmetic, Array
from dtir.ops.contract import parse_spec
from dtir.verify.value.case import CaseTask, CaseValue, Shape
from dtir.verify.value.grid import Grid
from dtir.verify.value.held import Held, assemble, replicas

MOST_ELEMENTS = 50_000_000
"""Elements (and products) that one evaluation of one operator may make; beyond it the judge refuses."""


class TooLarge(Exception):
    """An evaluation would need more memory or work than the judge spends; the message says how much."""


class Unknown(Exception):
    """Nothing is known of the result: no such operator, or the call does not fit it; the message says why."""


def check_work(call_shapes: Sequence[Shape], task: CaseTask, results: Sequence[Shape]) -> None:
    """Refuse an evaluation whose intermediate results are larger than the judge's limit.

    Raises:
        TooLarge: with the number of elements.
    """
    work = max([math.prod(shape) for shape in (*call_shapes, *results)], default=0)
    spec = task.attributes.get("spec")
    if isinstance(spec, str):
        try:
            parts, _ = parse_spec(spec, len(call_shapes))
        except OpError:
            parts = ()
        extents: dict[str, int] = {}
        for labels, shape in zip(parts, call_shapes, strict=False):
            for label, extent in zip(labels, shape, strict=False):
                extents[label] = max(extent, extents.get(label, 0))
        work = max(work, math.prod(extents.values()))
    else:
        # Operands that broadcast against each other make the product of their extents.
        rank = max([len(shape) for shape in call_shapes], default=0)
        widest = [max(shape[-1 - dim] if dim < len(shape) else 1 for shape in call_shapes) for dim in range(rank)]
        work = max(work, math.prod(widest))
    if work > MOST_ELEMENTS:
        raise TooLarge(f"{task.operation} would make {work} elements, more than {MOST_ELEMENTS}")


def _run(
    operator: OpDef, arithmetic: Arithmetic, operands: Sequence[Array], call: OpCall, place: Place, task: CaseTask
) -> tuple[Array, ...]:
    if operator.run is None:
        raise Unknown(f"operator {task.operation} cannot be evaluated")
    shapes = [tuple(int(extent) for extent in array.shape) for array in operands]
    results: list[Shape] = [tuple(extent for extent in shape if isinstance(extent, int)) for shape in call.results]
    check_work(shapes, task, results)
    # Domains (the square root of a negative number) are the comparison's matter: elements that are no number do not count.
    with np.errstate(all="ignore"):
        return operator.run(arithmetic, operands, call, place)


def run_whole(
    task: CaseTask, arithmetic: Arithmetic, operands: Sequence[Array], results: Sequence[Shape], seed: int
) -> tuple[Array, ...]:
    """The undivided operator.

    Raises:
        Unknown: no such operator, or the call does not fit it.
        TooLarge: the result would be larger than the judge's limit.
    """
    operator = task.operator
    if operator is None:
        raise Unknown(f"operator {task.operation} is not known")
    call = OpCall(tuple(array.shape for array in operands), tuple(results), task.attributes)
    framed = list(operands)
    try:
        reach = operator.reach(call)
        if reach is not None and framed:
            for at in reach.operands:
                framed[at] = np.pad(framed[at], [(radius, radius) for radius in reach.radius], mode="wrap")
        return _run(operator, arithmetic, framed, call, Place(seed=seed), task)
    except (OpError, ValueError, IndexError, ZeroDivisionError) as error:
        raise Unknown(f"{task.operation}: {error}") from error


def run_ranks(
    task: CaseTask,
    operands: Sequence[CaseValue],
    results: Sequence[CaseValue],
    held: Sequence[Held],
    grid: Grid,
    arithmetic: Arithmetic,
    seed: int,
) -> tuple[Held, ...]:
    """The operator on every rank of the task that has all operands.

    Raises:
        Unknown: no such operator.
        TooLarge: a result would be larger than the judge's limit.
    """
    operator = task.operator
    if operator is None:
        raise Unknown(f"operator {task.operation} is not known")
    found = tuple(Held({}, ghosts=any(item.ghosts for item in held)) for _ in results)
    frames = _Frames(task, operator, operands, held, grid, arithmetic)
    labels = _labels(task, operator, operands, results)
    for rank in task.ranks:
        if any(rank not in item.arrays for item in held):
            continue
        try:
            _meet(labels, [tuple(item.arrays[rank].shape) for item in held])
            arrays = frames.operands(rank)
            call = OpCall(
                tuple(tuple(item.arrays[rank].shape) for item in held),
                tuple(value.local_shape(grid, rank) for value in results),
                _attributes_on(task, held, rank),
            )
            made = _run(operator, arithmetic, arrays, call, _place(results, grid, rank, seed), task)
        except (OpError, ValueError, IndexError, ZeroDivisionError) as error:
            for item in found:
                item.fault = item.fault or f"{task.operation} cannot run on rank {rank}: {error}"
            continue
        for item, array in zip(found, made, strict=False):
            item.arrays[rank] = array
            own = held[0].experts.get(rank) if held else None
            if own is not None and array.ndim and array.shape[0] == len(own):
                item.experts[rank] = own
    return found


def _labels(
    task: CaseTask, operator: OpDef, operands: Sequence[CaseValue], results: Sequence[CaseValue]
) -> Labels | None:
    """The label rule on the undivided shapes; None where it says nothing (per-rank data, a call that does not fit)."""
    if any(value.varying or value.local_shapes for value in (*operands, *results)):
        return None
    call = OpCall(tuple(value.shape for value in operands), tuple(value.shape for value in results), task.attributes)
    try:
        rule = operator.labels(call)
    except OpError:
        return None
    return rule if isinstance(rule, Labels) else None


def _meet(labels: Labels | None, shapes: Sequence[Shape]) -> None:
    """Dims of one label must have one extent on a rank: a block of one element must not be taken for a broadcast.

    Raises:
        OpError: they have several.
    """
    extents: dict[str, int] = {}
    for row, shape in zip(labels.operands if labels is not None else (), shapes, strict=False):
        for label, extent in zip(row, shape, strict=False):
            if label is not None and extents.setdefault(label, extent) != extent:
                raise OpError(f"blocks of one dim have {extents[label]} and {extent} elements")


def _place(results: Sequence[CaseValue], grid: Grid, rank: int, seed: int) -> Place:
    offsets = tuple(tuple(span.start for span in value.block(grid, rank)) for value in results)
    return Place(rank, offsets, grid.coordinates(rank), grid.size, seed)


def _attributes_on(task: CaseTask, held: Sequence[Held], rank: int) -> Mapping[str, object]:
    """The parameters of a call on one rank: a route names the rank's own experts, row by row of what it received."""
    own = held[0].experts.get(rank) if held else None
    if own is None or "route" not in task.attributes:
        return task.attributes
    return {**task.attributes, "route": own}


def is_random(task: CaseTask) -> bool:
    """True when the undivided result is whatever the ranks draw."""
    return task.operator is not None and task.operator.source is SourceKind.RANDOM


# -- ghosts ----------------------------------------------------------------------------------------------------------


class _Frames:
    """Operands as an operator reads them on a rank: as they are, or with a frame of neighbours' elements.

    A declared ghost frame is taken at its word: it holds the neighbours' elements as they are now (whether it was filled
    again after a write is the static judge's question). Elements beyond it, and undeclared corners, are zeros.
    """

    def __init__(
        self,
        task: CaseTask,
        operator: OpDef,
        values: Sequence[CaseValue],
        held: Sequence[Held],
        grid: Grid,
        arithmetic: Arithmetic,
    ) -> None:
        self.values, self.held, self.grid, self.arithmetic = values, held, grid, arithmetic
        self.reach: Reach | None = None
        self.ghosts = task.attributes.get("include_halo") is True
        if values:
            shapes = tuple(value.shape for value in values)
            try:
                self.reach = operator.reach(OpCall(shapes, (values[0].shape,), task.attributes))
            except OpError as error:
                raise Unknown(f"{task.operation}: {error}") from error
        self._wholes: dict[tuple[int, ...], Array | None] = {}

    def operands(self, rank: int) -> list[Array]:
        arrays = [item.arrays[rank] for item in self.held]
        if self.reach is not None:
            widths = [(radius, radius) for radius in self.reach.radius]
            for position in self.reach.operands:
                arrays[position] = self._framed(position, rank, widths)
        elif self.ghosts:
            for position, value in enumerate(self.values):
                if value.halo:
                    widths = [value.halo.get(dim, (0, 0)) for dim in range(len(value.shape))]
                    arrays[position] = self._framed(position, rank, widths)
        return arrays

    def _whole(self, position: int, rank: int) -> Array | None:
        """The undivided operand as the copies on the rank's own replica have it."""
        value, held = self.values[position], self.held[position]
        own = next((ranks for ranks in replicas(value, self.grid, held.arrays) if rank in ranks), [rank])
        key = (position, own[0])
        if key not in self._wholes:
            self._wholes[key] = assemble(value, self.grid, self.arithmetic, held.arrays, own)
        return self._wholes[key]

    def _framed(self, position: int, rank: int, widths: Sequence[tuple[int, int]]) -> Array:
        value, held = self.values[position], self.held[position]
        local = held.arrays[rank]
        if value.folds or value.varying:
            raise OpError("a frame of neighbours exists only for values that are split or replicated")
        whole = self._whole(position, rank)
        if whole is None:
            raise OpError("the neighbours' elements are not there")
        spans = value.block(self.grid, rank)
        if any(span.held != span.stop - span.start for span in spans):
            raise OpError("a padded block has no frame of neighbours")
        check = math.prod(span.held + before + after for span, (before, after) in zip(spans, widths, strict=True))
        if check > MOST_ELEMENTS:
            raise TooLarge(f"a frame of {list(widths)} makes {check} elements, more than {MOST_ELEMENTS}")
        index = [
            [k % extent for k in range(span.start - before, span.stop + after)]
            for span, (before, after), extent in zip(spans, widths, value.shape, strict=True)
        ]
        framed = whole[np.ix_(*index)].copy()
        core = tuple(slice(before, before + span.held) for span, (before, _) in zip(spans, widths, strict=True))
        framed[core] = local
        self._blank(framed, value, held, spans_held=[span.held for span in spans], widths=widths)
        return framed

    def _blank(
        self,
        framed: Array,
        value: CaseValue,
        held: Held,
        *,
        spans_held: Sequence[int],
        widths: Sequence[tuple[int, int]],
    ) -> None:
        """Zeros where the frame reaches beyond the declared ghosts, and in corners that were not exchanged."""
        split = [dim for dim, axes in enumerate(value.dims) if self.grid.members(axes) > 1]
        inside: dict[int, list[slice]] = {}
        for dim in split:
            before, after = widths[dim]
            low, high = value.halo.get(dim, (0, 0)) if held.ghosts else (0, 0)
            size = spans_held[dim]
            everything = (slice(None),) * dim
            framed[(*everything, slice(0, max(0, before - low)))] = 0
            framed[(*everything, slice(before + size + high, before + size + after + 1))] = 0
            inside[dim] = [slice(0, before), slice(before + size, None)]
        if value.corners:
            return
        for first, second in itertools.combinations(split, 2):
            for one, other in itertools.product(inside[first], inside[second]):
                place: list[slice] = [slice(None)] * framed.ndim
                place[first], place[second] = one, other
                framed[tuple(place)] = 0
