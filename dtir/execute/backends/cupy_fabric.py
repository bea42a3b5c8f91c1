"""Communication among ranks that live on devices: fused kernels among those of one device.

Results that all members share stay one array, as in the numpy back end: an all_gather along the first dim or a broadcast
moves nothing. A reduction reads every member once and writes one result. What no kernel does (custom reductions, complex
numbers, parts of unequal size) is done by the array module, with the same code as on numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dtir.execute.accumulate import ReductionError
from dtir.execute.backends.base import Combine
from dtir.execute.backends.cupy_lane import Lane
from dtir.execute.backends.cupy_moves import exchange_box, gather_box
from dtir.execute.dtypes import Array, numpy_dtype
from dtir.execute.exchange import Exchange, Moves
from dtir.execute.fabric import LocalFabric
from dtir.execute.kernels import Geometry, blocks, can_fold, fold, pairs
from dtir.execute.semantics import ExchangeError, shard_bounds
from dtir.execute.steps import ExecPlan, Step
from dtir.execute.values import Held, Slab, is_shared
from dtir.ir.reductions import ReductionKind

ELEMENT_OF: Mapping[str, str] = MappingProxyType(
    {
        "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "u8",
        "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
        "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    }
)  # fmt: skip
"""Element types of the kernels by the names of array types."""

_TRUTH: Mapping[ReductionKind, ReductionKind] = MappingProxyType(
    {
        ReductionKind.SUM: ReductionKind.OR,
        ReductionKind.AVERAGE: ReductionKind.OR,
        ReductionKind.MAX: ReductionKind.OR,
        ReductionKind.PRODUCT: ReductionKind.AND,
        ReductionKind.MIN: ReductionKind.AND,
    }
)
"""What arithmetic on predicates means, as numpy has it."""


class DeviceFabric(LocalFabric):
    """Exchanges among ranks of one device.

    Args:
        ranks: the ranks.
        lane: their device.
    """

    def __init__(self, ranks: Sequence[int], lane: Lane) -> None:
        super().__init__(ranks, lane.runtime.xp)
        self.lane = lane

    def now_ns(self) -> int:
        """The device's clock where somebody asks for times, else the host's."""
        return self.lane.now_ns()

    def sync(self) -> None:
        """Wait until everything that was issued is done."""
        self.lane.sync()

    def barrier(self, step: Step) -> None:
        """Wait for the device: a step that is timed alone begins when nothing else runs."""
        self.lane.sync()

    def close(self) -> None:
        """Give memory back."""
        self.lane.close()

    def exchange(
        self, request: Exchange, operands: Sequence[Held], ranks: Sequence[int], combine: Combine | None
    ) -> tuple[Held, ...]:
        """The results of a collective, issued and not waited for."""
        with self.lane.transferring():
            results = super().exchange(request, operands, ranks, combine)
        self.lane.issued(operands, results)
        return results

    def move(self, request: Moves, operand: Held, ranks: Sequence[int]) -> Held:
        """The results of transfers, issued and not waited for."""
        with self.lane.transferring():
            result = super().move(request, operand, ranks)
        self.lane.issued([operand], [result])
        return result

    # -- kernels ----------------------------------------------------------------------------------------------------------

    def _lines(self, slab: Array) -> tuple[Array, list[int]]:
        """A slab whose rows lie each in one piece, and where they begin."""
        rows = slab if slab.size and slab[0].flags.c_contiguous else self.xp.ascontiguousarray(slab)
        first, step = self.lane.runtime.address(rows), int(rows.strides[0])
        return rows, [first + place * step for place in range(rows.shape[0])]

    def _folded(self, parts: Array, kind: ReductionKind) -> Array:
        if parts.shape[0] == 0:
            raise ReductionError("a reduction needs at least one rank")
        truth = parts.dtype.kind == "b"
        wanted = _TRUTH.get(kind, kind) if truth else kind
        element = ELEMENT_OF.get(parts.dtype.name)
        if parts.shape[0] == 1 or not parts.size or element is None or not can_fold(element, wanted):
            return super()._folded(parts, kind)
        rows, members = self._lines(parts)
        result = self.xp.empty(parts.shape[1:], parts.dtype)
        count = int(result.size)
        self.lane.launch(fold(members, [self.lane.runtime.address(result)], element, wanted, count, self.lane.geometry))
        del rows
        return result

    def _scattered(self, request: Exchange, parts: Array, sizes: Sequence[int] | None) -> Sequence[Array]:
        dim = request.dim
        if sizes is not None or request.reduction is None or dim is None or not 0 <= dim < parts.ndim - 1:
            return super()._scattered(request, parts, sizes)
        members, shape = parts.shape[0], parts.shape[1:]
        shard_bounds(shape[dim], members, None)
        whole = self._folded(parts, request.reduction)
        # One result of the reduction, seen as a slab: the block of a member is a view.
        split = whole.reshape(*shape[:dim], members, shape[dim] // members, *shape[dim + 1 :])
        return self.xp.moveaxis(split, dim, 0)

    def _gathered(self, request: Exchange, members: Sequence[Array]) -> Array:
        dim = request.dim
        slab = _slab_of(members)
        whole = dim is None or slab is None or not slab.size or not 0 <= dim < slab.ndim - 1
        if whole or dim == 0 or request.trim is not None:
            return super()._gathered(request, members)
        assert dim is not None
        assert slab is not None
        shape = tuple(slab.shape[1:])
        box, step = gather_box(shape, dim, slab.shape[0], slab.dtype.itemsize)
        rows, sources = self._lines(slab)
        result = self.xp.empty((*shape[:dim], shape[dim] * slab.shape[0], *shape[dim + 1 :]), slab.dtype)
        self.lane.launch(blocks(sources, [self.lane.runtime.address(result)], box, 0, step, self.lane.geometry))
        del rows
        return result

    def _exchanged(self, request: Exchange, members: Sequence[Array], sizes: Sequence[int] | None) -> Sequence[Array]:
        split, concat = request.split, request.concat
        slab = _slab_of(members)
        if slab is None or sizes is not None or not slab.size or split is None or concat is None:
            return super()._exchanged(request, members, sizes)
        count, shape = slab.shape[0], tuple(slab.shape[1:])
        if not (0 <= split < len(shape) and 0 <= concat < len(shape)):
            return super()._exchanged(request, members, sizes)
        shard_bounds(shape[split], count, None)
        box, source_step, target_step = exchange_box(shape, split, concat, count, slab.dtype.itemsize)
        rows, sources = self._lines(slab)
        block = [extent // count if dim == split else extent for dim, extent in enumerate(shape)]
        block[concat] *= count
        result = self.xp.empty((count, *block), slab.dtype)
        _, targets = self._lines(result)
        self.lane.launch(blocks(sources, targets, box, source_step, target_step, self.lane.geometry))
        del rows
        return result

    def _permute(self, request: Exchange, operand: Held, ranks: Sequence[int]) -> Held:
        present = set(ranks)
        sources = {target: source for source, target in request.pairs if target in present}
        position = {rank: place for place, rank in enumerate(operand.ranks)}
        alike = isinstance(operand, Slab) and is_shared(operand) and len(sources) == len(ranks)
        if (
            not isinstance(operand, Slab)
            or alike
            or not operand.array.size
            or any(source not in present or source not in position for source in sources.values())
        ):
            return super()._permute(request, operand, ranks)
        rows, places = self._lines(operand.array)
        complete = len(sources) == len(ranks)
        made = self.xp.empty if complete else self.xp.zeros
        result = made((len(ranks), *operand.array.shape[1:]), operand.array.dtype)
        _, targets = self._lines(result)
        listed = [(places[position[sources[rank]]], targets[at]) for at, rank in enumerate(ranks) if rank in sources]
        if listed:
            size = int(result.nbytes) // len(ranks)
            self.lane.launch(
                pairs([one for one, _ in listed], [other for _, other in listed], size, self.lane.geometry)
            )
        del rows
        return Slab(ranks, result)


def kernels_of(plan: ExecPlan, geometry: Geometry) -> list[str]:
    """The reductions that a plan launches, as kernels to have ready; those of moves are small and few."""
    found: dict[str, None] = {}
    for scope in plan.scopes:
        for step in scope.steps:
            request = step.exchange
            if request is None or request.reduction is None:
                continue
            for slot in step.inputs:
                dtype = numpy_dtype(scope.slots[slot].value.type.dtype)
                element = ELEMENT_OF.get(dtype.name)
                kind = _TRUTH.get(request.reduction, request.reduction) if dtype.kind == "b" else request.reduction
                for members in {len(group) for group in request.groups} - {1}:
                    if element is not None and can_fold(element, kind):
                        listed = [256 * member for member in range(members)]
                        found[fold(listed, [1 << 40], element, kind, 1, geometry).expression] = None
    return list(found)


def _slab_of(members: Any) -> Array | None:
    """The members' arrays where they are one; None where they are listed."""
    return None if isinstance(members, (list, tuple)) else members


__all__ = ["ELEMENT_OF", "DeviceFabric", "ExchangeError", "kernels_of"]
