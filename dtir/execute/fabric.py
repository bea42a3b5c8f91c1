"""All ranks in one process: exchanges are folds and views of arrays in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np

from dtir.execute import semantics
from dtir.execute.accumulate import ReductionError
from dtir.execute.buffers import Buffers
from dtir.execute.dtypes import Array
from dtir.execute.exchange import Exchange, Group, Moves
from dtir.execute.semantics import ExchangeError
from dtir.execute.steps import Step
from dtir.execute.updates import permute_in_place, ragged_all_to_all
from dtir.execute.values import Held, Slab, at, is_shared, rows, stack, take
from dtir.ir.collectives import CollectiveKind
from dtir.ir.reductions import ReductionKind

Combine: TypeAlias = Callable[[Array, Array], Array]
"""A custom reduction of two arrays."""


class LocalFabric:
    """Exchanges among ranks that are all in this process.

    Args:
        ranks: the ranks.
        xp: the array module.
    """

    def __init__(self, ranks: Sequence[int], xp: Any = np) -> None:
        self.ranks = tuple(ranks)
        self.xp = xp
        self._empty = Buffers().empty if xp is np else None

    def now_ns(self) -> int:
        """A clock that all ranks share."""
        return time.perf_counter_ns()

    def sync(self) -> None:
        """Nothing is ever pending."""

    def start(self) -> None:
        """Nobody else begins."""

    def barrier(self, step: Step) -> None:
        """Nobody else runs."""

    def begin(self, step: Step) -> None:
        """Nobody asks what happens."""

    def end(self, step: Step) -> None:
        """Nothing crosses a wire, so that nothing can be counted."""
        return

    def enter(self, step: Step) -> None:
        """Who goes on is seen from the ranks of each exchange."""

    def part(self, step: Step, ranks: Sequence[int], choices: Sequence[int]) -> None:
        """Nobody else needs to know."""

    def follow(self, step: Step, choice: int) -> None:
        """Nobody else needs to know."""

    def leave(self, step: Step) -> None:
        """Nobody else needs to know."""

    def close(self) -> None:
        """Nothing is held."""

    def exchange(
        self, request: Exchange, operands: Sequence[Held], ranks: Sequence[int], combine: Combine | None
    ) -> tuple[Held, ...]:
        """The results of a collective on `ranks`.

        Raises:
            ExchangeError: shapes do not fit, or members of a group are not among the ranks.
            ReductionError: the reduction has no meaning for the type.
        """
        if request.slices:
            return permute_in_place(self.xp, request, operands, ranks)
        if request.kind is CollectiveKind.COLLECTIVE_PERMUTE:
            return tuple(self._permute(request, operand, ranks) for operand in operands)
        numbered = self._numbered(request, ranks)
        groups = [group for _, group in numbered]
        if request.ragged:
            return (ragged_all_to_all(self.xp, operands, ranks, groups),)
        if request.kind is CollectiveKind.ALL_TO_ALL and request.split is None:
            return self._tuple_all_to_all(request, operands, ranks, groups)
        return tuple(self._grouped(request, operand, ranks, numbered, combine) for operand in operands)

    def _numbered(self, request: Exchange, ranks: Sequence[int]) -> list[tuple[int, Group]]:
        """The groups with members among the ranks, and their numbers.

        Raises:
            ExchangeError: a member is not among them.
        """
        if len(request.groups) == 1 and request.groups[0] == ranks:
            return [(0, request.groups[0])]
        present = set(ranks)
        numbered = [(number, group) for number, group in enumerate(request.groups) if present.intersection(group)]
        for _, group in numbered:
            absent = [rank for rank in group if rank not in present]
            if absent:
                raise ExchangeError(
                    f"ranks {_few(sorted(present.intersection(group)))} wait for ranks {_few(absent)}, which never arrive: "
                    "they took another branch or left the loop"
                )
        return numbered

    # -- collectives with groups ----------------------------------------------------------------------------------------

    def _grouped(
        self,
        request: Exchange,
        operand: Held,
        ranks: Sequence[int],
        groups: Sequence[tuple[int, Group]],
        combine: Combine | None,
    ) -> Held:
        xp = self.xp
        found: dict[int, Array] = {}
        whole = len(groups) == 1 and len(groups[0][1]) == len(ranks)
        for number, group in groups:
            if request.kind is CollectiveKind.BROADCAST:
                result: _Common | _Own = _Common(at(operand, group[request.roots[number]]))
            else:
                result = self._one(request, take(operand, group), number, combine)
            if isinstance(result, _Common):
                if whole:
                    return Slab(ranks, xp.broadcast_to(result.array[None], (len(ranks), *result.array.shape)))
                found.update(dict.fromkeys(group, result.array))
            elif whole and tuple(group) == tuple(ranks) and result.is_slab:
                return Slab(ranks, result.arrays)
            else:
                found.update(zip(group, result.arrays, strict=True))
        missing = [rank for rank in ranks if rank not in found]
        if missing:
            # A rank of no group: HLO gives it zeros.
            like = next(iter(found.values()))
            found.update(dict.fromkeys(missing, xp.zeros(like.shape, like.dtype)))
        return stack(ranks, [found[rank] for rank in ranks], xp)

    def _one(self, request: Exchange, parts: Held, number: int, combine: Combine | None) -> _Common | _Own:
        members = rows(parts)
        match request.kind:
            case CollectiveKind.ALL_REDUCE:
                return _Common(self._reduced(request, parts, combine))
            case CollectiveKind.REDUCE_SCATTER:
                sizes = request.sizes[number] if request.sizes is not None else None
                if request.reduction is ReductionKind.CUSTOM:
                    whole = self._reduced(request, parts, combine)
                    return _Own(list(_blocks(whole, request.dim, len(members), sizes)))
                semantics.require_equal(members, "reduce_scatter")
                return _Own(self._scattered(request, _slab(parts), sizes))
            case CollectiveKind.ALL_GATHER:
                return _Common(self._gathered(request, members))
            case CollectiveKind.ALL_TO_ALL:
                sizes = request.sizes[number] if request.sizes is not None else None
                return _Own(self._exchanged(request, members, sizes))
            case CollectiveKind.BROADCAST | CollectiveKind.COLLECTIVE_PERMUTE:
                raise AssertionError(f"{request.kind.value} takes no parts of all members")
            case _:
                assert_never(request.kind)

    def _reduced(self, request: Exchange, parts: Held, combine: Combine | None) -> Array:
        members = rows(parts)
        if not isinstance(parts, Slab):  # the rows of a slab are equal
            semantics.require_equal(members, request.kind.value)
        if request.reduction is ReductionKind.CUSTOM:
            if combine is None:
                raise ReductionError("a custom reduction needs its computation")
            total = members[0]
            for member in members[1:]:
                total = combine(total, member)
            return total
        return self._folded(_slab(parts), _reduction(request))

    def _folded(self, parts: Array, kind: ReductionKind) -> Array:
        """The reduction of a slab over its first dim."""
        return semantics.all_reduce(self.xp, parts, kind, self._empty)

    def _scattered(self, request: Exchange, parts: Array, sizes: Sequence[int] | None) -> Sequence[Array]:
        """The blocks of the reduction of a slab, one a member; a list or a slab."""
        return semantics.reduce_scatter(self.xp, parts, _reduction(request), request.dim, sizes, self._empty)

    def _gathered(self, request: Exchange, members: Sequence[Array]) -> Array:
        """The members' arrays joined."""
        return semantics.all_gather(self.xp, members, request.dim, vector=request.vector, trim=request.trim)

    def _exchanged(self, request: Exchange, members: Sequence[Array], sizes: Sequence[int] | None) -> Sequence[Array]:
        """What every member gets of an all_to_all; a list or a slab."""
        return semantics.all_to_all(self.xp, members, request.split, request.concat, sizes)

    def _tuple_all_to_all(
        self, request: Exchange, operands: Sequence[Held], ranks: Sequence[int], groups: Sequence[Group]
    ) -> tuple[Held, ...]:
        """Operand j of a rank goes to member j of its group; result i comes from member i."""
        place: dict[int, tuple[Group, int]] = {rank: (group, at) for group in groups for at, rank in enumerate(group)}
        results: list[Held] = []
        for number in range(len(operands)):
            arrays: list[Array] = []
            for rank in ranks:
                group, position = place[rank]
                if len(group) != len(operands):
                    raise ExchangeError(f"{len(operands)} operands for a group of {len(group)} ranks")
                arrays.append(at(operands[position], group[number]))
            results.append(stack(ranks, arrays, self.xp))
        return tuple(results)

    def _permute(self, request: Exchange, operand: Held, ranks: Sequence[int]) -> Held:
        xp = self.xp
        present = set(ranks)
        sources = {destination: source for source, destination in request.pairs if destination in present}
        waiting = [(source, target) for target, source in sources.items() if source not in present]
        if waiting:
            raise ExchangeError(
                f"rank {waiting[0][1]} waits for rank {waiting[0][0]}, which never arrives: "
                "it took another branch or left the loop"
            )
        if isinstance(operand, Slab):
            if is_shared(operand) and len(sources) == len(ranks):
                return operand
            position = {rank: number for number, rank in enumerate(operand.ranks)}
            result = xp.zeros((len(ranks), *operand.array.shape[1:]), operand.array.dtype)
            receivers = [number for number, rank in enumerate(ranks) if rank in sources]
            result[receivers] = operand.array[[position[sources[ranks[number]]] for number in receivers]]
            return Slab(ranks, result)
        arrays = [at(operand, sources[rank]) if rank in sources else xp.zeros_like(at(operand, rank)) for rank in ranks]
        return stack(ranks, arrays, xp)

    # -- blocks ---------------------------------------------------------------------------------------------------------

    def move(self, request: Moves, operand: Held, ranks: Sequence[int]) -> Held:
        """The results of transfers on the ranks that have one."""
        xp = self.xp
        like = rows(operand)[0]
        filled: dict[int, Array] = {rank: xp.zeros(shape, like.dtype) for rank, shape in request.shapes.items()}
        sources: Mapping[int, Array] = dict(zip(operand.ranks, rows(operand), strict=True))
        for move in request.moves:
            target = tuple(slice(start, stop) for start, stop in move.destination_box)
            origin = tuple(slice(start, stop) for start, stop in move.source_box)
            filled[move.destination][target] = sources[move.source][origin]
        targets = tuple(sorted(filled))
        return stack(targets, [filled[rank] for rank in targets], xp)


class _Common:
    """One array that all members share."""

    def __init__(self, array: Array) -> None:
        self.array = array


class _Own:
    """One array a member, in group order; a slab or a list."""

    def __init__(self, arrays: Any) -> None:
        self.arrays: Any = arrays
        self.is_slab = not isinstance(arrays, (list, tuple))


def _reduction(request: Exchange) -> ReductionKind:
    if request.reduction is None:
        raise ReductionError(f"{request.kind.value} names no reduction")
    return request.reduction


def _slab(held: Held) -> Array:
    """The rows as one array; they have one shape."""
    return held.array if isinstance(held, Slab) else np.stack(list(held.arrays))


def _blocks(array: Array, dim: int | None, members: int, sizes: Sequence[int] | None) -> list[Array]:
    if dim is None:
        raise ExchangeError("reduce_scatter needs a dim")
    bounds = semantics.shard_bounds(array.shape[dim], members, sizes)
    return [array[(slice(None),) * dim + (slice(*bound),)] for bound in bounds]


def _few(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks[:8]) + (", ..." if len(ranks) > 8 else "")
