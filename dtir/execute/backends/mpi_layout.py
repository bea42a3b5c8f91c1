"""Which processes take part in an exchange, and what that costs on the wire: plain arithmetic, no MPI.

Ranks of one process exchange in memory; what follows from a binding is which blocks leave a process, for whom, and in
which way: by the library's collective or by messages of our own.

>>> layout = GroupLayout.of((0, 1, 2, 3), (0, 0, 1, 1))
>>> layout.processes, layout.places[1]
((0, 1), (2, 3))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from dtir.execute.backends.mpi_library import operation_name
from dtir.execute.exchange import Exchange
from dtir.execute.semantics import ExchangeError, shard_bounds
from dtir.ir.collectives import CollectiveKind
from dtir.ir.reductions import ReductionKind


class Way(Enum):
    """How the members of a group exchange."""

    MEMORY = "memory"
    LIBRARY = "library"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """A group over processes.

    Args:
        members: the ranks, in group order.
        processes: the processes that host a member, in the order in which the group meets them.
        places: for every process the positions of its members in the group, ascending.
    """

    members: tuple[int, ...]
    processes: tuple[int, ...]
    places: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, members: Sequence[int], process_of: Sequence[int]) -> GroupLayout:
        """The layout of a group.

        Args:
            members: ranks in group order.
            process_of: the process of every rank.
        """
        places: dict[int, list[int]] = {}
        for place, rank in enumerate(members):
            places.setdefault(process_of[rank], []).append(place)
        return cls(tuple(members), tuple(places), {process: tuple(found) for process, found in places.items()})

    @property
    def is_regular(self) -> bool:
        """True when every process hosts equally many members, and its members stand together in the group."""
        expected = 0
        for process in self.processes:
            places = self.places[process]
            if len(places) != len(self.members) // len(self.processes):
                return False
            if places != tuple(range(expected, expected + len(places))):
                return False
            expected += len(places)
        return expected == len(self.members)

    def others(self, process: int) -> tuple[int, ...]:
        """The other processes, beginning after this one: not all send to the same process first."""
        at = self.processes.index(process)
        return self.processes[at + 1 :] + self.processes[:at]


@dataclass(frozen=True, slots=True)
class Operand:
    """What the members of a group bring.

    Args:
        dtype: element type.
        shapes: of every member, by position in the group.
    """

    dtype: np.dtype[Any]
    shapes: tuple[tuple[int, ...], ...]

    def nbytes(self, place: int) -> int:
        """Bytes of one member's array."""
        return int(np.prod(self.shapes[place], dtype=np.int64)) * self.dtype.itemsize

    @property
    def is_even(self) -> bool:
        """True when all members bring the same shape."""
        return len(set(self.shapes)) <= 1

    def require_even(self, what: str) -> None:
        """Raise unless all members bring the same shape.

        Raises:
            ExchangeError: with the first two that differ.
        """
        for place, shape in enumerate(self.shapes):
            if shape != self.shapes[0]:
                raise ExchangeError(
                    f"{what} needs equal shapes: member 0 has {list(self.shapes[0])}, member {place} {list(shape)}"
                )


def chunk_bounds(length: int, parts: int) -> list[tuple[int, int]]:
    """Elements cut into nearly equal chunks, one a process.

    >>> chunk_bounds(10, 4)
    [(0, 2), (2, 5), (5, 7), (7, 10)]
    """
    edges = [part * length // parts for part in range(parts + 1)]
    return [(edges[part], edges[part + 1]) for part in range(parts)]


def way_of(request: Exchange, layout: GroupLayout, operands: Sequence[Operand], algorithm: str, number: int = 0) -> Way:
    """How a group exchanges.

    The library is asked where it means the same: a reduction that it has (see `operation_name`), and for the others
    equal blocks in the order of the processes. Everything else goes by messages of our own.

    Args:
        request: the collective.
        layout: the group over processes.
        operands: what its members bring.
        algorithm: ``native`` or ``ordered``; the latter never asks the library.
        number: of the group among the request's groups.
    """
    if len(layout.processes) == 1:
        return Way.MEMORY
    if algorithm == "ordered":
        return Way.DIRECT
    match request.kind:
        case CollectiveKind.ALL_REDUCE:
            fine = all(_has_operation(request, operand) for operand in operands)
        case CollectiveKind.REDUCE_SCATTER:
            equal = _has_equal_blocks(request, layout, operands, request.dim, number)
            fine = layout.is_regular and equal and all(_has_operation(request, operand) for operand in operands)
        case CollectiveKind.ALL_GATHER:
            fine = layout.is_regular and all(operand.is_even and _has_dim(operand, request.dim) for operand in operands)
        case CollectiveKind.ALL_TO_ALL:
            single = len(layout.processes) == len(layout.members)
            fine = single and _has_equal_blocks(request, layout, operands, request.split, number)
            fine = fine and all(_has_dim(operand, request.concat) for operand in operands)
        case CollectiveKind.BROADCAST:
            fine = True
        case CollectiveKind.COLLECTIVE_PERMUTE:
            fine = False
    return Way.LIBRARY if fine else Way.DIRECT


def _has_dim(operand: Operand, dim: int | None) -> bool:
    return dim is not None and 0 <= dim < len(operand.shapes[0])


def _has_equal_blocks(
    request: Exchange, layout: GroupLayout, operands: Sequence[Operand], dim: int | None, number: int
) -> bool:
    """True when every member gets the same share along a dim (what does not divide is not the library's to find)."""
    if request.sizes is not None and len(set(request.sizes[number])) > 1:
        return False
    return all(
        operand.is_even and _has_dim(operand, dim) and operand.shapes[0][dim or 0] % len(layout.members) == 0
        for operand in operands
    )


def _has_operation(request: Exchange, operand: Operand) -> bool:
    if request.reduction in (None, ReductionKind.CUSTOM) or not operand.is_even:
        return False
    return operation_name(operand.dtype, request.reduction) is not None


# -- bytes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Issued:
    """What an exchange sends.

    Args:
        sizes: bytes by sending process; processes that send nothing are left out.
        exact: our own messages; else the least that any algorithm sends, the library may send more.
    """

    sizes: Mapping[int, int]
    exact: bool

    @property
    def total_bytes(self) -> int:
        """Bytes of all processes."""
        return sum(self.sizes.values())


def issued_by_group(
    request: Exchange, layout: GroupLayout, operands: Sequence[Operand], way: Way, number: int = 0
) -> dict[int, int]:
    """Bytes that each process sends for one group.

    `Way.LIBRARY` counts what no algorithm can do without: for a reduction every process brings one partial result.
    """
    sent: dict[int, int] = {}
    if way is Way.MEMORY:
        return sent
    for index, operand in enumerate(operands):
        for process in layout.processes:
            size = _sent(request, layout, operand, index, process, way, number)
            sent[process] = sent.get(process, 0) + size
    return {process: size for process, size in sent.items() if size}


def _sent(
    request: Exchange, layout: GroupLayout, operand: Operand, index: int, process: int, way: Way, number: int
) -> int:
    mine = layout.places[process]
    others = [other for other in layout.processes if other != process]
    match request.kind:
        case CollectiveKind.ALL_REDUCE:
            length = int(np.prod(operand.shapes[mine[0]], dtype=np.int64))
            bounds = dict(zip(layout.processes, chunk_bounds(length, len(layout.processes)), strict=True))
            own = bounds[process][1] - bounds[process][0]
            parts = len(mine) if way is Way.DIRECT else 1
            return (parts * (length - own) + len(others) * own) * operand.dtype.itemsize
        case CollectiveKind.REDUCE_SCATTER:
            sources = mine if way is Way.DIRECT else mine[:1]
            return sum(
                block_bytes(operand, place, request.dim, _sizes(request, number), len(layout.members), target)
                for other in others
                for target in layout.places[other]
                for place in sources
            )
        case CollectiveKind.ALL_TO_ALL:
            if request.split is None:
                # Operand j of every member goes to member j.
                return sum(operand.nbytes(place) for place in mine) if layout_process(layout, index) != process else 0
            return sum(
                block_bytes(operand, place, request.split, _sizes(request, number), len(layout.members), target)
                for other in others
                for target in layout.places[other]
                for place in mine
            )
        case CollectiveKind.ALL_GATHER:
            return len(others) * sum(operand.nbytes(place) for place in mine)
        case CollectiveKind.BROADCAST:
            root = request.roots[number]
            return len(others) * operand.nbytes(root) if root in mine else 0
        case CollectiveKind.COLLECTIVE_PERMUTE:
            raise AssertionError("permutes have pairs, not groups")


def layout_process(layout: GroupLayout, place: int) -> int:
    """The process that hosts the member at a position."""
    return next(process for process, places in layout.places.items() if place in places)


def _sizes(request: Exchange, number: int) -> tuple[int, ...] | None:
    return request.sizes[number] if request.sizes is not None else None


def block_bytes(
    operand: Operand, place: int, dim: int | None, sizes: Sequence[int] | None, members: int, target: int
) -> int:
    """Bytes of the block that one member has for another one, along a dim."""
    shape = operand.shapes[place]
    if dim is None or not shape[dim]:
        return 0
    start, stop = shard_bounds(shape[dim], members, sizes)[target]
    return operand.nbytes(place) // shape[dim] * (stop - start)
