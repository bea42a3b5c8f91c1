"""What an importer gets and gives: `Source`, `Limits`, `Imported`.

An importer is a function ``(Source) -> Imported``. It never raises for what the file holds: everything that is wrong
with it comes back as diagnostics, and a program comes back whenever there is one to show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeAlias

from dtir.ir.ids import NodeId
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import EMPTY_DIAGNOSTICS, Diagnostic, DiagnosticSet

DIGEST_SIZE_BYTES = 20
"""BLAKE2b-160, the size of every digest of this package."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of an input is accepted; checked while reading, before anything is parsed.

    Args:
        size_bytes: bytes of one input, counted after decompression (a small ``.gz`` may unpack to any size).
        json_depth: brackets open at once in JSON text. A reader may set itself a lower limit (snapshots nest 984 levels
            at most); this one keeps a file of nothing but brackets from being read at all.
        items: lines and commas of the text. Every entry of a list and every instruction costs memory many times its own
            length once it is parsed.
    """

    size_bytes: int = 512 * 1024 * 1024
    json_depth: int = 10_000
    items: int = 100_000_000

    def __post_init__(self) -> None:
        for name in ("size_bytes", "json_depth", "items"):
            value = getattr(self, name)
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"{name}={value!r} ({type(value).__name__}) must be a positive int")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Source:
    """One input, read in full and unpacked.

    Args:
        name: what to call it: a path as given, or ``<stdin>``.
        data: its bytes after decompression.
        text: the same as text; None for a binary format.
    """

    name: str
    data: bytes = field(repr=False)
    text: str | None = field(repr=False, default=None)

    @property
    def label(self) -> str:
        """The name without folders."""
        return PurePath(self.name).name or self.name

    @property
    def stem(self) -> str:
        """The label up to its first dot, for naming a program: ``mlp.spmd.hlo.gz`` gives ``mlp``."""
        return self.label.split(".", 1)[0] or self.label

    def digest(self) -> str:
        """BLAKE2b-160 of the unpacked bytes: the same file zipped or not has one digest."""
        return hashlib.blake2b(self.data, digest_size=DIGEST_SIZE_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class TaskTime:
    """When one rank ran one task, as a trace says it: nanoseconds of the trace's clock.

    Times are no part of a program; they go into a run record.
    """

    task: NodeId
    rank: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What came out of one input.

    Args:
        program: the program, or None when there is none to show. A program may come with errors: it could be read,
            and breaks a rule.
        diagnostics: everything found on the way, in the order of the file.
        format: the format's short name (`dtir.importers.detect.FORMATS`), ``unknown`` when none was recognised.
        digest: of the source: a snapshot's own content digest, else BLAKE2b-160 of the unpacked bytes; empty when
            nothing could be read.
        label: what to call the source: its file name without folders.
        others: further programs of the same source, in order; only the YAML form holds several.
        times: when the ranks ran the tasks, where the source is a trace that says it.
    """

    program: DistributedTaskIR | None
    diagnostics: DiagnosticSet
    format: str
    digest: str
    label: str
    others: tuple[Imported, ...] = ()
    times: tuple[TaskTime, ...] = field(repr=False, default=())

    @property
    def ok(self) -> bool:
        """True when there is a program and no error."""
        return self.program is not None and self.diagnostics.ok


Loader: TypeAlias = Callable[[Source], Imported]
"""Turns a recognised source into a program."""


def refused(label: str, *diagnostics: Diagnostic, format: str = "unknown", digest: str = "") -> Imported:
    """An `Imported` without a program."""
    return Imported(None, DiagnosticSet(diagnostics), format, digest, label)


def imported(
    source: Source, format: str, program: DistributedTaskIR | None, diagnostics: DiagnosticSet = EMPTY_DIAGNOSTICS
) -> Imported:
    """An `Imported` of a source whose format has no digest of its own."""
    return Imported(program, diagnostics, format, source.digest(), source.label)
