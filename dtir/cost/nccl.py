"""NCCL's own tuning model: which algorithm and protocol it takes for a message, and how long it expects that to take.

A *model* that presets use, never a measurement: ``time = latency · count + bytes / bandwidth`` with tables of latencies
by algorithm, protocol and link, and of bandwidth caps by GPU generation.

Units: the tables are in microseconds and GB/s (1e9), as NCCL's are; functions take bytes and return seconds.

**Source**: NVIDIA/nccl, src/graph/tuning.cc, functions ``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime`` (facts:
formulas and constants, as of 2.2x; SEMANTICS 3.4 read them at 5067397). Ring and tree are modelled; CollNet, NVLS and PAT
are not, so that machines whose switches reduce (NVLS) may be faster than planned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from dtir.ir.collectives import CollectiveKind


class Protocol(Enum):
    """How data travel: 8-byte flags, 128-byte lines, or plain chunks with fences."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"


class Generation(Enum):
    """GPU generation, by which bandwidth caps are tabled."""

    VOLTA = "volta"
    AMPERE = "ampere"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"


_PROTOCOLS = tuple(Protocol)
_GENERATIONS = tuple(Generation)

# By protocol LL, LL128, Simple.
_BASE_US = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4)}
_HOP_US = {
    "nvlink": {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4)},
    "pci": {"tree": (1.0, 1.9, 4.0), "ring": (1.0, 2.5, 5.7)},
    "net": {"tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0)},
}
# By generation, then by 1, 2, more nodes.
_LL_MAX = ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0))
_RING_LL128 = ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 36.7), (40.0, 40.0, 40.0))
_TREE_LL128 = ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 29.0), (55.6, 31.67, 20.0))
_TREE_SIMPLE = ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (70.0, 42.8, 24.0))
# Trees of medium messages, by protocol, for 64 B, 128 B, ... 512 MB.
_TREE_CORRECTION = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    (
        0.9,
        0.9,
        0.9,
        0.9,
        0.9,
        0.9,
        0.9,
        0.8,
        0.7,
        0.6,
        0.6,
        0.5,
        0.5,
        0.5,
        0.5,
        0.6,
        0.7,
        0.8,
        0.7,
        0.7,
        0.8,
        0.9,
        0.9,
        0.9,
    ),
)
_NET_OVERHEAD_US = 1.0


@dataclass(frozen=True, slots=True)
class NcclMachine:
    """The nodes that NCCL finds.

    Args:
        generation: of the GPUs.
        channels: rings (and trees) that it builds.
        intra_bytes_per_s: bandwidth of one channel inside a node.
        inter_bytes_per_s: bandwidth of one channel between nodes.
        intra_link: ``nvlink`` or ``pci``.
    """

    generation: Generation
    channels: int
    intra_bytes_per_s: float
    inter_bytes_per_s: float
    intra_link: str = "nvlink"

    def __post_init__(self) -> None:
        if self.intra_link not in ("nvlink", "pci"):
            raise ValueError(f"intra_link={self.intra_link!r} (str): wanted nvlink or pci")


@dataclass(frozen=True, slots=True)
class NcclTime:
    """One algorithm and protocol.

    Args:
        algorithm: ``ring`` or ``tree``.
        protocol: how data travel.
        seconds: expected time.
    """

    algorithm: str
    protocol: Protocol
    seconds: float

    @property
    def name(self) -> str:
        """``ring/LL128``."""
        return f"{self.algorithm}/{self.protocol.value}"


def is_modelled(kind: CollectiveKind) -> bool:
    """Whether the model knows a collective; all_to_all and transfers are grouped sends, which NCCL does not tune."""
    match kind:
        case (
            CollectiveKind.ALL_REDUCE
            | CollectiveKind.REDUCE_SCATTER
            | CollectiveKind.ALL_GATHER
            | CollectiveKind.BROADCAST
        ):
            return True
        case CollectiveKind.ALL_TO_ALL | CollectiveKind.COLLECTIVE_PERMUTE:
            return False
        case _:
            assert_never(kind)


def nccl_times(
    kind: CollectiveKind,
    ranks: int,
    nodes: int,
    size_bytes: float,
    machine: NcclMachine,
    network_bytes_per_s: float = math.inf,
) -> Iterator[NcclTime]:
    """Every algorithm and protocol that NCCL would weigh for a message.

    Args:
        kind: a collective that `is_modelled`.
        ranks: members of the communicator.
        nodes: how many nodes they are on.
        size_bytes: S.
        machine: the nodes.
        network_bytes_per_s: what the ranks of one node can send to other nodes together; a communicator with one rank a
            node finds no more network than that rank's own.

    Raises:
        ValueError: not modelled, or no communication at all (fewer than 2 ranks, more nodes than ranks).
    """
    if not is_modelled(kind) or ranks < 2 or not 1 <= nodes <= ranks:
        raise ValueError(f"kind={kind.value}, ranks={ranks}, nodes={nodes}: wanted a modelled kind and 2 ranks or more")
    algorithms = ("tree", "ring") if kind is CollectiveKind.ALL_REDUCE else ("ring",)
    for algorithm in algorithms:
        for protocol in _PROTOCOLS:
            bandwidth = _algorithm_bandwidth(
                kind, algorithm, protocol, ranks, nodes, size_bytes, machine, network_bytes_per_s
            )
            latency = _latency_us(kind, algorithm, protocol, ranks, nodes, machine)
            if _on_plateau(kind, algorithm, protocol, ranks, nodes, size_bytes, machine):
                latency *= 1.9 if machine.generation is Generation.VOLTA else 1.4
            yield NcclTime(algorithm, protocol, latency * 1e-6 + size_bytes / (bandwidth * 1e9))


def nccl_best(
    kind: CollectiveKind,
    ranks: int,
    nodes: int,
    size_bytes: float,
    machine: NcclMachine,
    network_bytes_per_s: float = math.inf,
) -> NcclTime:
    """What NCCL would choose; arguments as for `nccl_times`."""
    times = nccl_times(kind, ranks, nodes, size_bytes, machine, network_bytes_per_s)
    return min(times, key=lambda item: item.seconds)


def _steps(kind: CollectiveKind, count: int) -> int:
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return 2 * (count - 1)
        case CollectiveKind.REDUCE_SCATTER | CollectiveKind.ALL_GATHER:
            return count - 1
        case CollectiveKind.BROADCAST | CollectiveKind.ALL_TO_ALL | CollectiveKind.COLLECTIVE_PERMUTE:
            return count
        case _:
            assert_never(kind)


def _algorithm_bandwidth(
    kind: CollectiveKind,
    algorithm: str,
    protocol: Protocol,
    ranks: int,
    nodes: int,
    size_bytes: float,
    machine: NcclMachine,
    network_bytes_per_s: float,
) -> float:
    """GB/s of S over time, before latency."""
    generation, scale = _GENERATIONS.index(machine.generation), min(nodes, 3) - 1
    place, channels = _PROTOCOLS.index(protocol), machine.channels
    channel = machine.intra_bytes_per_s if nodes <= 2 else machine.inter_bytes_per_s
    bus = channels * channel * 1e-9
    if nodes > 1:
        bus = min(bus, network_bytes_per_s * 1e-9)
    # Between nodes the CPU decides the cap of LL; the row of AMD hosts is the second one, Intel's the first.
    ll_max = _LL_MAX[generation if nodes == 1 else 0][scale]
    if algorithm == "ring":
        if protocol is Protocol.LL:
            bus = min(ll_max, bus * 0.5)
        elif protocol is Protocol.LL128:
            bus = min(bus * 0.92, channels * _RING_LL128[generation][scale])
        return bus * ranks / _steps(kind, ranks)
    bus = min(bus * 0.92, channels * _TREE_SIMPLE[generation][scale])
    if protocol is Protocol.LL:
        bus = min(bus / 3.8, ll_max)
    elif protocol is Protocol.LL128:
        bus = min(bus * (7 / 9 if nodes == 1 else 120 / 128), channels * _TREE_LL128[generation][scale])
    units = int(size_bytes) >> 6
    if units and units.bit_length() - 1 < 23:
        bus *= _TREE_CORRECTION[place][units.bit_length() - 1]
    return bus * 0.5


def _latency_us(
    kind: CollectiveKind, algorithm: str, protocol: Protocol, ranks: int, nodes: int, machine: NcclMachine
) -> float:
    place = _PROTOCOLS.index(protocol)
    intra = _HOP_US[machine.intra_link][algorithm][place]
    # With one rank a node nothing hides the network: NCCL then takes the latency of trees.
    inter = _HOP_US["net"]["tree" if ranks == nodes else algorithm][place]
    base = _BASE_US[algorithm][place]
    if algorithm == "tree":
        return base + 2 * ((ranks // nodes - 1) * intra + (nodes.bit_length() - 1) * inter)
    if kind is CollectiveKind.BROADCAST:
        # Channels are alike on a node with a switch, and a broadcast is one pipeline then.
        return base + _HOP_US[machine.intra_link if nodes == 1 else "net"]["ring"][place]
    if nodes > 1:
        intra = max(intra, _NET_OVERHEAD_US * (3 if protocol is Protocol.SIMPLE else 1))
    across = _steps(kind, nodes) if nodes > 1 else 0
    return base + (_steps(kind, ranks) - across) * intra + across * inter


def _on_plateau(
    kind: CollectiveKind,
    algorithm: str,
    protocol: Protocol,
    ranks: int,
    nodes: int,
    size_bytes: float,
    machine: NcclMachine,
) -> bool:
    """Rings of plain chunks across nodes pay more latency once every rank's share is 64 bytes a channel."""
    return (
        algorithm == "ring"
        and protocol is Protocol.SIMPLE
        and nodes > 1
        and kind is CollectiveKind.ALL_REDUCE
        and size_bytes / (machine.channels * ranks) >= 64
    )
