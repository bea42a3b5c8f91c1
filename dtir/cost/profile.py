"""The machine profile: what a machine can do, outside of every program.

A profile holds one or more of

* **curves**: measured times of collectives as segments of ``alpha + beta · bytes``, by operation, group size, algorithm,
  dtype class and transport, each with the noise of its measurement;
* **levels**: links from the innermost (ranks of a node) outwards, from which formulas of algorithms follow;
* **nccl**: parameters of NCCL's tuning model;
* **rates** of one rank: flops, memory bandwidth and size, the cost of starting a task.

Ranks lie on the levels in order: with 8 ranks a unit of the first level, ranks 0 to 7 are on one node.

>>> curve = Curve("all_reduce", 4, segments=(Segment(0, 1e-5, 1e-9), Segment(4096, 4e-5, 5e-10)))
>>> [round(curve.seconds(size), 9) for size in (1000, 8192)]
[1.1e-05, 4.4096e-05]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from dtir.cost.algorithms import Link, Shape
from dtir.cost.nccl import NcclMachine

SCHEMA, VERSION = "dtir.machine-profile", "1.0.0"

SENDRECV = "sendrecv"
"""The operation of curves for transfers between two ranks; the others are named as `CollectiveKind` is."""

ANY = "any"
"""Dtype class of operations that only move bytes; and a rate that holds for every dtype without its own."""


class Standing(Enum):
    """How a profile came to its numbers."""

    MEASURED = "measured"
    PUBLISHED = "published"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers come from.

    Args:
        standing: measured, published (data sheets), or a model.
        text: what was measured on what, or the documents by name.
        date: ISO date, of the measurement or of reading the documents.
    """

    standing: Standing
    text: str
    date: str


@dataclass(frozen=True, slots=True)
class Segment:
    """From a message size on, ``alpha_s + beta_s_per_byte · bytes``."""

    from_bytes: float
    alpha_s: float
    beta_s_per_byte: float


@dataclass(frozen=True, slots=True)
class Noise:
    """How measured times of one message size were spread.

    Args:
        size_bytes: S.
        samples: how many measurements.
        p10_s, p50_s: times that 10 and 50 % of them do not exceed.
        iqr_s: distance of the quartiles.
    """

    size_bytes: int
    samples: int
    p10_s: float
    p50_s: float
    iqr_s: float

    @property
    def relative(self) -> float:
        """IQR over the median."""
        return self.iqr_s / self.p50_s if self.p50_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Time over message size of one operation.

    Args:
        op: a collective kind's name, or ``sendrecv``.
        group_size: ranks of a group.
        algorithm: of the library where it is known, else ``native``.
        dtype: dtype class (see `dtype_class`); ``any`` where nothing is computed.
        transport: name of the level that the group spans; empty: it does not matter.
        segments: rising, the first from 0.
        measured_bytes: smallest and largest size measured; None where the curve states none.
        fit_error: median of the relative error of the fit.
        noise: by size.
    """

    op: str
    group_size: int
    algorithm: str = "native"
    dtype: str = ANY
    transport: str = ""
    segments: tuple[Segment, ...] = ()
    measured_bytes: tuple[int, int] | None = None
    fit_error: float | None = None
    noise: tuple[Noise, ...] = field(default=(), repr=False)

    def segment(self, size_bytes: float) -> Segment:
        """The segment that a size falls in."""
        place = bisect_right([item.from_bytes for item in self.segments], size_bytes) - 1
        return self.segments[max(0, place)]

    def seconds(self, size_bytes: float) -> float:
        """The time of a message."""
        found = self.segment(size_bytes)
        return found.alpha_s + found.beta_s_per_byte * size_bytes

    def is_measured(self, size_bytes: float) -> bool:
        """Whether a size lies within what was measured."""
        return self.measured_bytes is None or self.measured_bytes[0] <= size_bytes <= self.measured_bytes[1]

    def relative_noise(self, size_bytes: float) -> float | None:
        """IQR over median at the measured size that is nearest; None without measurements."""
        if not self.noise:
            return None
        return min(self.noise, key=lambda item: abs(item.size_bytes - size_bytes)).relative


@dataclass(frozen=True, slots=True)
class Level:
    """One level of links.

    Args:
        name: ``nvlink``, ``infiniband``, ...
        ranks: ranks of one unit that the level joins; None: all there are.
        alpha_s: seconds a message.
        beta_s_per_byte: seconds a byte, of one rank (on a ring: of one link in one direction).
        shape: how the units below are wired.
        ports: how many ranks of a unit below can use the level at full rate at once; None: each has its own.
    """

    name: str
    ranks: int | None
    alpha_s: float
    beta_s_per_byte: float
    shape: Shape = Shape.SWITCH
    ports: int | None = None

    def link(self, gamma_s_per_byte: float = 0.0) -> Link:
        """The level as formulas take it."""
        return Link(self.alpha_s, self.beta_s_per_byte, gamma_s_per_byte, self.shape)


@dataclass(frozen=True, slots=True)
class Rates:
    """What one rank can do on its own.

    Args:
        matrix_flops_per_s: of matrix products, by dtype (``bf16``, ``f32``, ..., ``any``).
        vector_flops_per_s: of everything else, by dtype.
        memory_bytes_per_s: bandwidth of its memory, reading and writing together; None: not known.
        memory_bytes: size of its memory; None: not known.
        start_s: what every task costs besides (a kernel launch).
        reduce_s_per_byte: γ, seconds a byte that is reduced in a collective.
    """

    matrix_flops_per_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    vector_flops_per_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    memory_bytes_per_s: float | None = None
    memory_bytes: int | None = None
    start_s: float = 0.0
    reduce_s_per_byte: float = 0.0


@dataclass(frozen=True, slots=True)
class MachineProfile:
    """A machine.

    Args:
        id: what reports call it.
        summary: one line.
        source: where the numbers come from.
        host: facts of the machine that was measured, or is described.
        levels: links, innermost first; units grow from level to level.
        curves: measured collectives.
        rates: of one rank.
        nccl: parameters of NCCL's tuning model; None: it is not used.
    """

    id: str
    summary: str
    source: Source
    host: Mapping[str, str | int | float] = field(default_factory=lambda: MappingProxyType({}))
    levels: tuple[Level, ...] = ()
    curves: tuple[Curve, ...] = field(default=(), repr=False)
    rates: Rates = field(default_factory=Rates)
    nccl: NcclMachine | None = None

    @property
    def title(self) -> str:
        """``h100-nvlink-ib (published, 2024-11-01)``."""
        return f"{self.id} ({self.source.standing.value}, {self.source.date})"


_CLASSES = {
    "f64": "float64",
    "double": "float64",
    "float64": "float64",
    "f32": "float32",
    "float": "float32",
    "float32": "float32",
    "f16": "float16",
    "half": "float16",
    "float16": "float16",
    "bf16": "float16",
    "bfloat16": "float16",
}


def dtype_class(dtype: str | None) -> str:
    """The class of an element type that reductions are measured by: ``float64, float32, float16, float8, integer, any``.

    >>> dtype_class("bf16"), dtype_class("s32"), dtype_class("f8e4m3fn"), dtype_class(None)
    ('float16', 'integer', 'float8', 'any')
    """
    name = (dtype or "").lower()
    if name in _CLASSES:
        return _CLASSES[name]
    if name.startswith(("f8", "f4", "float8", "float4")):
        return "float8"
    if name.startswith(("s", "u", "i", "pred", "bool")):
        return "integer"
    return ANY


_SHORT = {
    "float64": "f64",
    "double": "f64",
    "float32": "f32",
    "float": "f32",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float8": "f8",
}


def rate_of(rates: Mapping[str, float], dtype: str) -> float | None:
    """The rate of a dtype: its own, that of its 8-bit family, else the one of ``any``; None when the profile has none."""
    name = _SHORT.get(dtype.lower(), dtype.lower())
    family = "f8" if name.startswith("f8") else name
    return rates.get(name) or rates.get(family) or rates.get(ANY)
