"""What one collective or transfer costs on a machine: measured curves where there are any, else models.

In this order:

1. a *curve* of the operation; other group sizes are interpolated in lg p, or extrapolated, and then say so;
2. *NCCL's tuning model*, for the collectives that it knows;
3. *α–β formulas* on the levels of the machine, the cheapest algorithm, flat or hierarchical;
4. α–β formulas on the link that the sendrecv curve shows, when the machine has no level;
5. nothing: the time is None, and says why.

>>> from dtir.cost.presets import load_preset
>>> price = Pricer(load_preset("h100-nvlink-ib")).collective(CollectiveKind.ALL_REDUCE, Spread((8, 4)), 1 << 26, "bf16")
>>> price.model, price.algorithm, price.level
('NCCL tuning model', 'ring/LL128', 'infiniband')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtir.cost.algorithms import Choice, Link, best
from dtir.cost.bounds import lower_bound
from dtir.cost.formulas import ceil_log2
from dtir.cost.hierarchy import hierarchical, phases
from dtir.cost.nccl import is_modelled, nccl_best
from dtir.cost.profile import ANY, SENDRECV, Curve, MachineProfile, dtype_class
from dtir.cost.spread import Spread, Units
from dtir.ir.collectives import CollectiveKind

_REDUCING = frozenset({CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER})

ALPHA_BETA = "alpha-beta formulas"
NCCL = "NCCL tuning model"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Price:
    """The planned time of one group.

    Args:
        seconds: of one execution; None when no model knows it.
        model: where it comes from.
        algorithm: what the model expects to be done.
        level: the outermost level that is used.
        level_bytes: bytes that a rank sends at least, by level, innermost first.
        noise: IQR over median of the measurements behind it; None where nothing was measured.
        notes: what the number leaves open.
    """

    seconds: float | None
    model: str
    algorithm: str = ""
    level: str = ""
    level_bytes: tuple[tuple[str, float], ...] = ()
    noise: float | None = None
    notes: tuple[str, ...] = ()


FREE = Price(0.0, NONE, "none")
"""A group of one rank."""


@dataclass(frozen=True, slots=True)
class _Key:
    kind: CollectiveKind
    spread: Spread
    size_bytes: float
    dtype: str
    users: tuple[int, ...]


class Pricer:
    """Prices on one machine; equal questions are answered once."""

    def __init__(self, profile: MachineProfile) -> None:
        self.profile = profile
        self.units: Units = tuple(level.ranks for level in profile.levels)
        self._known: dict[_Key, Price] = {}
        self._curves: dict[str, list[Curve]] = {}
        for curve in profile.curves:
            self._curves.setdefault(curve.op, []).append(curve)

    def collective(
        self, kind: CollectiveKind, spread: Spread, size_bytes: float, dtype: str | None, users: Sequence[int] = ()
    ) -> Price:
        """The price of one group.

        Args:
            kind: the collective; a permute is one pair.
            spread: how the group lies on the levels of the machine.
            size_bytes: S.
            dtype: element type; None where it is not known.
            users: per level, ranks of a unit below that use the level at once; empty: one.
        """
        key = _Key(kind, spread, float(size_bytes), dtype_class(dtype) if kind in _REDUCING else ANY, tuple(users))
        if key not in self._known:
            self._known[key] = self._price(key)
        return self._known[key]

    def _price(self, key: _Key) -> Price:
        if key.spread.members <= 1:
            return FREE
        found = self._measured(key) or self._tuned(key) or self._formula(key)
        if found is None:
            return Price(None, NONE, notes=(f"the profile has no curve and no level for {key.kind.value}",))
        return replace(found, level=self._level_name(key.spread), level_bytes=self._level_bytes(key))

    # -- curves -------------------------------------------------------------------------------------------------------

    def _measured(self, key: _Key) -> Price | None:
        op = SENDRECV if key.kind is CollectiveKind.COLLECTIVE_PERMUTE else key.kind.value
        level = self._level_name(key.spread)
        curves = [item for item in self._curves.get(op, ()) if item.transport in ("", level)]
        if not curves:
            return None
        wanted = [item for item in curves if item.dtype == key.dtype] or [item for item in curves if item.dtype == ANY]
        notes: tuple[str, ...] = ()
        if not wanted:
            other = sorted({item.dtype for item in curves})[0]
            wanted = [item for item in curves if item.dtype == other]
            notes = (f"curve of {other} taken for {key.dtype}",) if key.dtype != ANY else ()
        by_algorithm: dict[str, list[Curve]] = {}
        for item in wanted:
            by_algorithm.setdefault(item.algorithm, []).append(item)
        prices = [self._on_curves(op, name, rows, key) for name, rows in by_algorithm.items()]
        found = min(prices, key=lambda price: price.seconds if price.seconds is not None else math.inf)
        return replace(found, notes=(*found.notes, *notes))

    def _on_curves(self, op: str, algorithm: str, rows: Sequence[Curve], key: _Key) -> Price:
        """The price by the curves of one algorithm, one a group size."""
        p, n = key.spread.members, key.size_bytes
        curves = {item.group_size: item for item in rows}
        below = max((size for size in curves if size <= p), default=None)
        above = min((size for size in curves if size >= p), default=None)
        if below is not None and above is not None:
            low, high = curves[below], curves[above]
            seconds = low.seconds(n)
            notes = _beyond(low, n)
            if below != above:
                weight = math.log(p / below) / math.log(above / below)
                seconds += (high.seconds(n) - seconds) * weight
                notes = (f"interpolated between groups of {below} and {above} ranks", *notes)
            noise = low.relative_noise(n) if below == above else None
        else:
            nearest = curves[min(curves) if below is None else max(curves)]
            seconds = _extrapolated(nearest, key)
            noise = None
            notes = (f"extrapolated from groups of {nearest.group_size} ranks to {p}", *_beyond(nearest, n))
        standing = self.profile.source.standing.value
        return Price(seconds, f"{standing} curve of {op}", algorithm, noise=noise, notes=notes)

    # -- models -------------------------------------------------------------------------------------------------------

    def _tuned(self, key: _Key) -> Price | None:
        machine, spread = self.profile.nccl, key.spread
        if machine is None or not is_modelled(key.kind) or not spread.joined:
            return None
        ranks = spread.members
        nodes = math.prod(spread.sizes[1:])
        network = math.inf
        if nodes > 1:
            # The ranks of one node share the ports of the node with whoever else uses them now.
            link = self._links(key)[spread.top]
            network = spread.sizes[0] / link.beta_s_per_byte if link.beta_s_per_byte else math.inf
        found = nccl_best(key.kind, ranks, nodes, key.size_bytes, machine, network)
        notes = () if spread.even else ("ranks lie unevenly on the nodes; taken as one a node",)
        return Price(found.seconds, NCCL, found.name, notes=notes)

    def _formula(self, key: _Key) -> Price | None:
        spread, n = key.spread, key.size_bytes
        links = self._links(key)
        if not links:
            link = self._link_of_curve(n / spread.members)
            if link is None:
                return None
            choice = best(key.kind, spread.members, n, link)
            return Price(choice.seconds, f"{ALPHA_BETA} on the sendrecv curve", choice.name)
        if not spread.joined:
            return Price(None, NONE, notes=("no level of the profile joins all ranks of the group",))
        flat = best(key.kind, spread.members, n, links[spread.top])
        notes = () if spread.even else ("ranks lie unevenly on the units; every message taken as one between units",)
        if sum(size > 1 for size in spread.sizes) > 1:
            tiered = hierarchical(key.kind, spread.sizes, n, links)
            if tiered.seconds <= flat.seconds:
                return Price(tiered.seconds, ALPHA_BETA, tiered.name, notes=notes)
        return Price(flat.seconds, ALPHA_BETA, self._flat_name(key, flat), notes=notes)

    def _flat_name(self, key: _Key, choice: Choice) -> str:
        flat = sum(size > 1 for size in key.spread.sizes) > 1
        return f"flat {choice.name}" if flat else choice.name

    def _links(self, key: _Key) -> list[Link]:
        gamma = self.profile.rates.reduce_s_per_byte if key.kind in _REDUCING else 0.0
        links: list[Link] = []
        for place, level in enumerate(self.profile.levels):
            users = key.users[place] if place < len(key.users) else 1
            links.append(level.link(gamma).slowed(users / level.ports if level.ports else 1.0))
        return links

    def _link_of_curve(self, size_bytes: float) -> Link | None:
        curves = self._curves.get(SENDRECV)
        if not curves:
            return None
        segment = curves[0].segment(size_bytes)
        return Link(segment.alpha_s, segment.beta_s_per_byte, self.profile.rates.reduce_s_per_byte)

    # -- levels -------------------------------------------------------------------------------------------------------

    def _level_name(self, spread: Spread) -> str:
        return self.profile.levels[spread.top].name if self.profile.levels else ""

    def _level_bytes(self, key: _Key) -> tuple[tuple[str, float], ...]:
        """Bytes that a rank sends at least on every level: those of the phases of the hierarchical algorithm."""
        levels = self.profile.levels
        if not levels or not key.spread.joined:
            return ()
        found = [0.0] * len(levels)
        for phase in phases(key.kind, key.spread.sizes, key.size_bytes):
            found[phase.level] += float(lower_bound(phase.kind, phase.members, phase.size_bytes).wire_bytes)
        return tuple((level.name, sent) for level, sent in zip(levels, found, strict=True) if sent)


def _beyond(curve: Curve, size_bytes: float) -> tuple[str, ...]:
    if curve.is_measured(size_bytes) or curve.measured_bytes is None:
        return ()
    least, most = curve.measured_bytes
    return (f"beyond the sizes that were measured ({least} to {most} bytes)",)


def _extrapolated(curve: Curve, key: _Key) -> float:
    """Latency grows as ⌈lg p⌉, the bytes as the lower bound of the collective says."""
    p, k = key.spread.members, curve.group_size
    segment = curve.segment(key.size_bytes)
    steps = ceil_log2(p) / ceil_log2(k)
    mine, known = (float(lower_bound(key.kind, size, 1).wire_bytes) for size in (p, k))
    return segment.alpha_s * steps + segment.beta_s_per_byte * key.size_bytes * mine / known
