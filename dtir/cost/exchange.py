"""The communication tasks of a program with their prices: groups, pairs, bytes, and what each group pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dtir.analysis.groups import Groups, group_size_of, groups_of
from dtir.analysis.volume import wire_bytes
from dtir.cost.classes import Pairs, Pattern, pattern_of
from dtir.cost.formulas import Terms
from dtir.cost.price import ALPHA_BETA, NONE, Price, Pricer
from dtir.cost.reshard import reshard_volume
from dtir.cost.spread import Ints, Spread, TooMany, spread_of, spreads_of, users_of
from dtir.cost.task_work import message_number
from dtir.ir.collectives import CollectiveKind, CollectivePermute, CollectiveSpecVariant, PeerTransfer, collective_kind
from dtir.ir.ids import ValueId
from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import RankRange
from dtir.ir.tasks import Collective, DistributedTask, PointToPoint, Reshard
from dtir.ir.values import DistributedValue

Ranks = tuple[int, ...] | RankRange


@dataclass(frozen=True, slots=True)
class Exchange:
    """One communication task.

    Args:
        task: the task.
        kind: ``all_reduce``, ..., ``transfer``, ``reshard``.
        size_bytes: S; None while symbolic.
        dtype: element type; None when the task names no values.
        prices: what groups (or pairs) may pay.
        groups: member lists; of a permute or transfer (source, destination) pairs.
        place: for every group the position of its price; None: all pay the first.
        paired: whether the groups are pairs of independent transfers.
        group_size: members of every group; None when they differ.
        total_bytes: bytes that all ranks send together at least; None while symbolic.
    """

    task: DistributedTask
    kind: str
    size_bytes: int | float | None
    dtype: str | None
    prices: tuple[Price, ...]
    groups: Groups = field(repr=False)
    place: Ints | None = field(default=None, repr=False)
    paired: bool = False
    group_size: int | None = None
    total_bytes: int | float | None = None

    @property
    def price(self) -> Price:
        """The dearest of the prices; one that is not known is dearer than all."""
        return max(self.prices, key=lambda item: float("inf") if item.seconds is None else item.seconds)

    def pattern(self) -> Pattern | Pairs:
        """Who meets whom.

        Raises:
            TooMany: more members than are looked at one by one.
        """
        if not self.paired:
            return pattern_of(self.groups, self.place)
        flat = np.array([tuple(pair) for pair in self.groups], dtype=np.int64).reshape(-1, 2)
        price = np.zeros(len(flat), dtype=np.int64) if self.place is None else self.place
        return Pairs(flat[:, 0], flat[:, 1], price)


class Exchanges:
    """Prices the communication tasks of one program; equal groups are looked at once."""

    def __init__(
        self,
        mesh: LogicalMesh,
        pricer: Pricer,
        bindings: Mapping[str, int | float],
        dtype: str | None,
    ) -> None:
        self._mesh = mesh
        self._pricer = pricer
        self._bindings = bindings
        self._dtype = dtype
        # By identity: the program keeps its rank sets and groups alive.
        self._groups: dict[tuple[object, ...], tuple[Groups, tuple[Spread, ...], Ints | None]] = {}
        self._users: dict[int, tuple[int, ...]] = {}

    def of(self, task: DistributedTask, values: Mapping[ValueId, DistributedValue]) -> Exchange | None:
        """The exchange of a communication task; None for any other.

        Raises:
            TooMany: more ranks than are looked at one by one.
        """
        match task.body:
            case Collective(spec=CollectivePermute() as spec):
                return self._permute(task, spec, self._dtype_of(task, values))
            case Collective(spec=spec):
                return self._collective(task, spec, self._dtype_of(task, values))
            case PointToPoint(spec=spec):
                return self._transfer(task, spec, self._dtype_of(task, values))
            case Reshard() as body:
                return self._reshard(task, body, values)
            case _:
                return None

    def _dtype_of(self, task: DistributedTask, values: Mapping[ValueId, DistributedValue]) -> str | None:
        for name in (*task.inputs, *task.outputs):
            if name in values:
                return values[name].type.dtype
        return self._dtype

    # -- collectives -----------------------------------------------------------------------------------------------------

    def _collective(self, task: DistributedTask, spec: CollectiveSpecVariant, dtype: str | None) -> Exchange:
        kind = collective_kind(spec)
        size = message_number(spec.message_bytes, self._bindings)
        groups, spreads, place = self._spread(spec)
        users = self._users_of(task.ranks)
        if size is None:
            prices: tuple[Price, ...] = (_symbolic(kind.value),)
            place = None
        else:
            found = [self._pricer.collective(kind, spread, size, dtype, users) for spread in spreads]
            prices, place = _merged(found, place)
        members = group_size_of(groups)
        total: int | float | None = None
        if size is not None and members is not None:
            total = wire_bytes(kind, members, size) * len(groups)
        elif size is not None:
            total = sum(wire_bytes(kind, len(group), size) for group in groups)
        return Exchange(task, kind.value, size, dtype, prices, groups, place, False, members, total)

    def _spread(self, spec: CollectiveSpecVariant) -> tuple[Groups, tuple[Spread, ...], Ints | None]:
        assert not isinstance(spec, CollectivePermute)
        # Groups may be long lists and are kept alive by the program; rank sets are short, or ranges.
        key = (id(spec.groups) if spec.groups else None, spec.axes, spec.participants)
        if key not in self._groups:
            groups = groups_of(spec, self._mesh) or ()
            spreads, place = spreads_of(groups, self._pricer.units) if len(groups) else ((), None)
            self._groups[key] = (groups, spreads, place)
        return self._groups[key]

    def _users_of(self, ranks: Ranks) -> tuple[int, ...]:
        """Per level, how many ranks of a unit below take part: they share its ports."""
        key = id(ranks)
        if key not in self._users:
            self._users[key] = tuple(self._users_on(level, ranks) for level in range(len(self._pricer.units)))
        return self._users[key]

    def _users_on(self, level: int, ranks: Ranks) -> int:
        if level == 0 or self._pricer.profile.levels[level].ports is None:
            return 1
        below = self._pricer.units[level - 1]
        return users_of(ranks, below, self._mesh.size) if below is not None else 1

    # -- transfers -------------------------------------------------------------------------------------------------------

    def _permute(self, task: DistributedTask, spec: CollectivePermute, dtype: str | None) -> Exchange:
        pairs = tuple(pair for pair in spec.pairs if pair[0] != pair[1])
        size = message_number(spec.message_bytes, self._bindings)
        kind = CollectiveKind.COLLECTIVE_PERMUTE
        total = None if size is None else size * len(pairs)
        return self._paired(task, kind.value, pairs, size, dtype, total)

    def _transfer(self, task: DistributedTask, spec: PeerTransfer, dtype: str | None) -> Exchange:
        size = message_number(spec.message_bytes, self._bindings)
        pairs = ((spec.source_rank, spec.destination_rank),)
        return self._paired(task, "transfer", pairs, size, dtype, size)

    def _paired(
        self,
        task: DistributedTask,
        kind: str,
        pairs: tuple[tuple[int, int], ...],
        size: int | float | None,
        dtype: str | None,
        total: int | float | None,
    ) -> Exchange:
        if size is None:
            return Exchange(task, kind, None, dtype, (_symbolic(kind),), pairs, None, True, 2, None)
        users = self._senders(pairs)
        spreads, place = spreads_of(pairs, self._pricer.units)
        permute = CollectiveKind.COLLECTIVE_PERMUTE
        found = [self._pricer.collective(permute, spread, size, dtype, users) for spread in spreads]
        prices, place = _merged(found, place)
        return Exchange(task, kind, size, dtype, prices, pairs, place, True, 2, total)

    def _senders(self, pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Per level, the most ranks of a unit below that send beyond it at once."""
        found: list[int] = []
        for level in range(len(self._pricer.units)):
            below = self._pricer.units[level - 1] if level else None
            if below is None or self._pricer.profile.levels[level].ports is None:
                found.append(1)
                continue
            leaving = [source // below for source, destination in pairs if source // below != destination // below]
            found.append(int(np.bincount(np.unique(leaving, return_inverse=True)[1]).max()) if leaving else 1)
        return tuple(found)

    # -- reshards --------------------------------------------------------------------------------------------------------

    def _reshard(self, task: DistributedTask, body: Reshard, values: Mapping[ValueId, DistributedValue]) -> Exchange:
        ranks = task.ranks
        dtype = self._dtype_of(task, values)
        volume = reshard_volume(task, body, values, self._mesh)
        groups: Groups = (ranks,)
        members = len(ranks)
        if isinstance(volume, str):
            price = Price(None, NONE, notes=(volume,))
            return Exchange(task, "reshard", None, dtype, (price,), groups, None, False, members, None)
        levels = self._pricer.profile.levels
        spread = spread_of(ranks, self._pricer.units)
        if not volume.busiest_bytes:
            price = Price(0.0, NONE, "nothing moves")
        elif not levels or not spread.joined:
            price = Price(None, NONE, notes=("the profile has no level that joins the ranks of a reshard",))
        else:
            link = levels[spread.top].link()
            seconds = Terms(volume.messages, volume.busiest_bytes).seconds(link.alpha_s, link.beta_s_per_byte)
            name = levels[spread.top].name
            price = Price(seconds, ALPHA_BETA, "busiest receiver", name, ((name, float(volume.busiest_bytes)),))
        return Exchange(
            task, "reshard", volume.busiest_bytes, dtype, (price,), groups, None, False, members, volume.total_bytes
        )


def _symbolic(kind: str) -> Price:
    return Price(None, NONE, notes=(f"the size of the {kind} is symbolic: bind it (--bind)",))


def _merged(found: Sequence[Price], place: Ints | None) -> tuple[tuple[Price, ...], Ints | None]:
    """Equal prices as one."""
    known: dict[Price, int] = {}
    numbers = [known.setdefault(price, len(known)) for price in found]
    if place is None or len(known) <= 1:
        return tuple(known) or (Price(0.0, NONE, "none"),), None
    return tuple(known), np.array(numbers, dtype=np.int64)[place]


__all__ = ["Exchange", "Exchanges", "TooMany"]
