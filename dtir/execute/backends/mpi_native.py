"""Collectives of the MPI library, each between the processes of one group.

A process with several members of the group first does in memory what can be done there: it folds its own values before a
reduction, and joins or hands out blocks afterwards. What is asked of the library is then one ordinary collective, and
buffers are handed over as they lie wherever their order allows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.accumulate import left_fold
from dtir.execute.backends.mpi_layout import GroupLayout, Operand
from dtir.execute.backends.mpi_library import LARGEST_COUNT, MpiError, operation_name, raw, type_name
from dtir.execute.buffers import Buffers
from dtir.execute.dtypes import Array, is_extended
from dtir.execute.exchange import Exchange
from dtir.ir.collectives import CollectiveKind
from dtir.ir.reductions import ReductionKind

Short: TypeAlias = Callable[[Array], tuple[Array, Callable[[], object]]]
"""From an array to where its result will be and the call that brings it there: nothing is left to do but that call."""


@dataclass(frozen=True, slots=True)
class Native:
    """The exchange of one group by the library, seen by one process.

    Args:
        mpi: the module `mpi4py.MPI`.
        comm: the communicator of the group's processes, in the order of the layout.
        request: the collective.
        number: of the group among the request's groups.
        layout: the group over processes.
        process: this one.
        buffers: memory for results.
    """

    mpi: Any
    comm: Any
    request: Exchange
    number: int
    layout: GroupLayout
    process: int
    buffers: Buffers

    @property
    def mine(self) -> tuple[int, ...]:
        """Positions of this process's members in the group."""
        return self.layout.places[self.process]

    def short(self, operand: Operand) -> Short | None:
        """The exchange of the only member of this process as one function of its array, ready but for the data.

        It does what the methods below do, for the cases in which nothing has to be rearranged; None for the others.
        Everything that does not depend on the data is found out here, once.
        """
        comm, request = self.comm, self.request
        if len(self.mine) != 1:
            return None
        (place,) = self.mine
        dtype, shape, count = operand.dtype, operand.shapes[place], len(self.layout.members)
        elements = math.prod(shape)
        if elements == 0 or elements * count * dtype.itemsize > LARGEST_COUNT or request.trim is not None:
            return None
        size, byte = elements * dtype.itemsize, self.mpi.BYTE
        match request.kind:
            case CollectiveKind.ALL_REDUCE if request.reduction is not ReductionKind.AVERAGE:
                unit, operation = getattr(self.mpi, type_name(dtype)), self._operation(operand)
                return self._short(comm.Allreduce, elements, elements, unit, shape, dtype, operation)
            case CollectiveKind.REDUCE_SCATTER if request.dim == 0 and request.reduction is not ReductionKind.AVERAGE:
                unit, operation = getattr(self.mpi, type_name(dtype)), self._operation(operand)
                block, share = (shape[0] // count, *shape[1:]), elements // count
                return self._short(comm.Reduce_scatter_block, share, share, unit, block, dtype, operation)
            case CollectiveKind.ALL_GATHER if request.dim == 0 and not is_extended(dtype):
                joined = (shape[0] * count, *shape[1:])
                return self._short(comm.Allgather, size, size, byte, joined, dtype)
            case CollectiveKind.ALL_TO_ALL if request.split == 0 and request.concat == 0 and not is_extended(dtype):
                return self._short(comm.Alltoall, size // count, size // count, byte, shape, dtype)
            case CollectiveKind.BROADCAST if operand.is_even and not is_extended(dtype):
                return self._short_broadcast(size, shape, dtype)
            case _:
                return None

    def _short(
        self,
        call: Callable[..., object],
        send: int,
        receive: int,
        unit: Any,
        shape: Sequence[int],
        dtype: Any,
        *more: Any,
    ) -> Short:
        empty = self.buffers.empty

        def prepare(array: Array) -> tuple[Array, Callable[[], object]]:
            found = empty(shape, dtype)
            return found, partial(call, [array, send, unit], [found, receive, unit], *more)

        return prepare

    def _short_broadcast(self, size: int, shape: Sequence[int], dtype: Any) -> Short:
        comm, byte, empty = self.comm, self.mpi.BYTE, self.buffers.empty
        root = self.request.roots[self.number]
        process = next(process for process, places in self.layout.places.items() if root in places)
        at_root, number = process == self.process, self.layout.processes.index(process)

        def prepare(array: Array) -> tuple[Array, Callable[[], object]]:
            whole = array if at_root else empty(shape, dtype)
            return whole, partial(comm.Bcast, [whole, size, byte], number)

        return prepare

    # -- reductions -----------------------------------------------------------------------------------------------------

    def all_reduce(self, operand: Operand, arrays: Mapping[int, Array]) -> Array:
        """The reduction of all members."""
        own = self._partial(arrays)
        total = self.buffers.empty(own.shape, own.dtype)
        self.comm.Allreduce(self._typed(own), self._typed(total), op=self._operation(operand))
        return self._finished(total)

    def reduce_scatter(self, operand: Operand, arrays: Mapping[int, Array]) -> list[Array]:
        """Each member's block of the reduction, for the members of this process; blocks are equal."""
        own, count = self._partial(arrays), len(self.layout.members)
        dim = self.request.dim or 0
        shape = own.shape
        step = shape[dim] // count
        block = (*shape[:dim], step, *shape[dim + 1 :])
        # Blocks one after the other: (members, *block). Along the first dim they lie so already.
        parts = own.reshape(*shape[:dim], count, step, *shape[dim + 1 :])
        ordered = np.asarray(np.moveaxis(parts, dim, 0), order="C")
        found = self.buffers.empty((len(self.mine), *block), own.dtype)
        # The send count of a block reduction is that of one process's share.
        self.comm.Reduce_scatter_block(
            self._typed(ordered, found.size), self._typed(found), op=self._operation(operand)
        )
        finished = self._finished(found)
        return [finished[number] for number in range(len(self.mine))]

    def _partial(self, arrays: Mapping[int, Array]) -> Array:
        """What this process brings to a reduction: its own members, folded."""
        if len(self.mine) == 1:
            return np.asarray(arrays[self.mine[0]], order="C")
        assert self.request.reduction is not None
        kind = self.request.reduction
        # Division comes once, after all have been added.
        kind = ReductionKind.SUM if kind is ReductionKind.AVERAGE else kind
        return np.asarray(left_fold(np, np.stack([arrays[place] for place in self.mine]), kind), order="C")

    def _operation(self, operand: Operand) -> Any:
        assert self.request.reduction is not None
        name = operation_name(operand.dtype, self.request.reduction)
        assert name is not None, "way_of asks the library only for what it has"
        return getattr(self.mpi, name)

    def _typed(self, array: Array, count: int | None = None) -> list[Any]:
        elements: int = array.size if count is None else count
        if elements > LARGEST_COUNT:
            raise MpiError(
                f"a reduction of {elements} elements is more than MPI takes: split the value over more ranks"
            )
        flat = array.reshape(-1)
        flat = flat.view(np.uint8) if flat.dtype.kind == "b" else flat
        return [flat, elements, getattr(self.mpi, type_name(array.dtype))]

    def _finished(self, total: Array) -> Array:
        if self.request.reduction is not ReductionKind.AVERAGE:
            return total
        members = len(self.layout.members)
        if total.dtype.kind in "iu":
            return total // members
        return (total / members).astype(total.dtype, copy=False)

    # -- exchanges that compute nothing -----------------------------------------------------------------------------------

    def all_gather(self, operand: Operand, arrays: Mapping[int, Array]) -> Array:
        """The members' arrays joined along the dim; all have one shape."""
        dim, shape, count = self.request.dim or 0, operand.shapes[0], len(self.layout.members)
        own = self._together(arrays)
        gathered = self.buffers.empty((count, *shape), operand.dtype)
        self._by_bytes(self.comm.Allgather, own, gathered)
        joined = list(shape)
        joined[dim] *= count
        return np.moveaxis(gathered, 0, dim).reshape(joined)

    def _together(self, arrays: Mapping[int, Array]) -> Array:
        if len(self.mine) == 1:
            return np.asarray(arrays[self.mine[0]], order="C")
        return np.stack([arrays[place] for place in self.mine])

    def _by_bytes(self, function: Any, source: Array, target: Array) -> None:
        """A collective that moves equal shares, whatever the element type."""
        if source.nbytes or target.nbytes:
            (outgoing, _, unit), (incoming, _, _) = raw(self.mpi, source, target)
            function([outgoing, unit], [incoming, unit])

    def all_to_all(self, operand: Operand, array: Array) -> Array:
        """Block j of member i at member j, joined in group order; one member a process, equal blocks."""
        split, concat = self.request.split or 0, self.request.concat or 0
        shape, count = operand.shapes[0], len(self.layout.members)
        step = shape[split] // count
        parts = array.reshape(*shape[:split], count, step, *shape[split + 1 :])
        outgoing = np.asarray(np.moveaxis(parts, split, 0), order="C")  # (destination, *block)
        incoming = self.buffers.empty(outgoing.shape, operand.dtype)  # (source, *block)
        self._by_bytes(self.comm.Alltoall, outgoing, incoming)
        joined = list(outgoing.shape[1:])
        joined[concat] *= count
        return np.moveaxis(incoming, 0, concat).reshape(joined)

    def broadcast(self, operand: Operand, array: Array | None) -> Array:
        """The root's array; `array` is that of the root, where it lives here."""
        root = self.request.roots[self.number]
        process = next(process for process, places in self.layout.places.items() if root in places)
        if process == self.process:
            assert array is not None
            found = np.asarray(array, order="C")
        else:
            found = self.buffers.empty(operand.shapes[root], operand.dtype)
        if found.nbytes:
            self.comm.Bcast(raw(self.mpi, found)[0], root=self.layout.processes.index(process))
        return found
