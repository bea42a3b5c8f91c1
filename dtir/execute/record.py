"""The run record: what was run, with what, and when every step began and ended.

Schema ``dtir.run-record`` 1.0.0, plain JSON; every key is described in `dtir.execute.record_file` and, generated from it,
in ``run-record.schema.json``. In short: `program` (with its digest), `backend`, `options`, `environment`, `binding`, `steps`
(with planned bytes and times), `records` and `local_records` (columns), `totals`, `wire`, `values`, `findings`, and
`profile` and `planned` where planned times were asked for. Times are nanoseconds of one clock; only differences mean
something.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dtir.execute.files import write_bytes
from dtir.execute.forecast import PlannedSpans
from dtir.execute.rank_runs import expanded, runs_of
from dtir.execute.record_file import SCHEMA, VERSION, ColumnsFile, RecordFile, ValueFile, read_file
from dtir.schema.diagnostics import Diagnostic
from dtir.schema.display import Displayed

COLUMNS = ("step", "rank", "repetition", "start_ns", "end_ns", "sent_bytes", "messages")


class RecordError(ValueError):
    """The file is no run record; the message says what was found and wanted."""


@dataclass(slots=True)
class Columns:
    """Records of steps, column by column; warm-up repetitions are not among them.

    Args:
        step: index of the step.
        rank: the rank; None: all ranks of the step together.
        repetition: number of the repetition.
        start_ns, end_ns: of one clock.
        sent_bytes, messages: what the rank sent; None: not measured.
    """

    step: list[int] = field(default_factory=list[int])
    rank: list[int | None] = field(default_factory=list[int | None])
    repetition: list[int] = field(default_factory=list[int])
    start_ns: list[int] = field(default_factory=list[int])
    end_ns: list[int] = field(default_factory=list[int])
    sent_bytes: list[int | None] = field(default_factory=list[int | None])
    messages: list[int | None] = field(default_factory=list[int | None])

    def add(
        self,
        step: int,
        rank: int | None,
        repetition: int,
        start_ns: int,
        end_ns: int,
        sent_bytes: int | None = None,
        messages: int | None = None,
    ) -> None:
        """One record."""
        self.step.append(step)
        self.rank.append(rank)
        self.repetition.append(repetition)
        self.start_ns.append(start_ns)
        self.end_ns.append(end_ns)
        self.sent_bytes.append(sent_bytes)
        self.messages.append(messages)

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, slots=True)
class StepEntry:
    """A step as a record names it (see `dtir.execute.record_file.StepFile`)."""

    index: int
    task: str
    name: str
    region: str
    kind: str
    operation: str
    message_bytes: int
    planned_bytes: int
    planned_us: float | None = None
    model: str = ""
    ranks: int = -1
    groups: int = -1
    wrong: int | None = None


@dataclass(frozen=True, slots=True)
class WireEntry:
    """What one process sent to another in a step, over all measured repetitions."""

    step: int
    process: int
    peer: int
    sent_bytes: int
    messages: int


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """One output compared with what it should be.

    Args:
        value: display id.
        name: what people call it.
        source: what it was compared with: ``undivided`` (the program run on one rank), ``expected`` (an array of the
            input file), or ``copies`` (only that copies agree).
        max_error: greatest absolute difference.
        bound: greatest difference that rounding explains.
        wrong: elements beyond the bound.
        elements: elements compared.
    """

    value: str
    name: str
    source: str
    max_error: float
    bound: float
    wrong: int
    elements: int


@dataclass(frozen=True, slots=True)
class RunRecord(Displayed):
    """A run record; see `dtir.execute.record_file.RecordFile` for the fields."""

    program: Mapping[str, Any]
    backend: Mapping[str, Any]
    options: Mapping[str, Any]
    environment: Mapping[str, Any]
    binding: Mapping[str, Any]
    steps: tuple[StepEntry, ...] = field(repr=False)
    records: Columns = field(repr=False)
    totals: Mapping[str, Any]
    values: tuple[ValueCheck, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    complete: bool = True
    wire: tuple[WireEntry, ...] = field(default=(), repr=False)
    local_records: Columns = field(default_factory=Columns, repr=False)
    rank_sets: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    group_sets: tuple[tuple[tuple[int, ...], ...], ...] = field(default=(), repr=False)
    profile: Mapping[str, Any] | None = None
    planned: PlannedSpans | None = field(default=None, repr=False)

    def to_json(self) -> str:
        """The record as a file holds it."""
        whole: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "complete": self.complete,
            "program": dict(self.program),
            "backend": dict(self.backend),
            "options": dict(self.options),
            "environment": dict(self.environment),
            "binding": dict(self.binding),
            "steps": [_fields(entry) for entry in self.steps],
            "rank_sets": [runs_of(ranks) for ranks in self.rank_sets],
            "group_sets": [[list(group) for group in groups] for groups in self.group_sets],
            "records": _columns(self.records),
            "local_records": _columns(self.local_records),
            "totals": dict(self.totals),
            "wire": [_fields(entry) for entry in self.wire],
            "values": [_fields(check) for check in self.values],
            "findings": [dict(item) for item in self.findings],
            "profile": None if self.profile is None else dict(self.profile),
            "planned": None if self.planned is None else _planned(self.planned),
        }
        return json.dumps(_finite(whole), allow_nan=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> RunRecord:
        """Read a record.

        Raises:
            RecordError: not JSON, another schema or version, a key missing or of another kind, columns of unequal length.
        """
        try:
            found = read_file(text)
            rank_sets = expanded(found.rank_sets)
            classes = expanded(found.planned.ranks) if found.planned is not None else ()
        except (ValueError, RecursionError) as error:
            raise RecordError(f"this is no run record ({SCHEMA} {VERSION}): {error}") from None
        _check_places(found)
        return cls(
            found.program.model_dump(),
            found.backend,
            found.options,
            found.environment,
            found.binding,
            tuple(StepEntry(**dict(entry)) for entry in found.steps),
            _read_columns(found.records),
            found.totals,
            tuple(_value(entry) for entry in found.values),
            tuple(item.model_dump() for item in found.findings),
            found.complete,
            tuple(WireEntry(**dict(entry)) for entry in found.wire),
            Columns() if found.local_records is None else _read_columns(found.local_records),
            rank_sets,
            tuple(tuple(tuple(group) for group in groups) for groups in found.group_sets),
            None if found.profile is None else found.profile.model_dump(),
            _read_planned(found, classes),
        )

    def step(self, index: int) -> StepEntry:
        """The step of an index.

        Raises:
            KeyError: there is none.
        """
        if 0 <= index < len(self.steps) and self.steps[index].index == index:
            return self.steps[index]
        for entry in self.steps:
            if entry.index == index:
                return entry
        raise KeyError(index)


def _check_places(found: RecordFile) -> None:
    """Raise unless what is named by its number is there."""
    known = {entry.index for entry in found.steps}
    spans, local = found.planned, found.local_records
    for name, named in (
        ("records.step", found.records.step),
        ("local_records.step", local.step if local is not None else ()),
        ("planned.step", spans.step if spans is not None else ()),
    ):
        strangers = set(named) - known
        if strangers:
            raise RecordError(f"{name} names step {min(strangers)}, which is not among the {len(known)} steps")
    for entry in found.steps:
        if entry.ranks >= len(found.rank_sets) or entry.groups >= len(found.group_sets):
            raise RecordError(f"step {entry.index} names a set of ranks or groups that is not there")
    if spans is not None:
        for one, came in zip(spans.classes, spans.arrived_us, strict=False):
            if not all(0 <= place < len(spans.ranks) for place in one) or (came is not None and len(came) != len(one)):
                raise RecordError("planned.classes names a class that is not there, or one without its arrival")


def _columns(columns: Columns) -> dict[str, list[Any]]:
    # A run that is ended writes its record while the thread that runs may go on: only rows that are whole by now.
    whole = min(len(getattr(columns, name)) for name in reversed(COLUMNS))
    return {name: getattr(columns, name)[:whole] for name in COLUMNS}


def _read_columns(found: ColumnsFile) -> Columns:
    return Columns(**{name: getattr(found, name) for name in COLUMNS})


def _value(found: ValueFile) -> ValueCheck:
    error, bound = float(found.max_error), float(found.bound)
    return ValueCheck(found.value, found.name, found.source, error, bound, found.wrong, found.elements)


def _planned(spans: PlannedSpans) -> dict[str, Any]:
    return {
        "step": list(spans.step),
        "start_us": list(spans.start_us),
        "end_us": list(spans.end_us),
        "arrived_us": [None if item is None else list(item) for item in spans.arrived_us],
        "executions": [str(item) for item in spans.executions],
        "classes": [list(item) for item in spans.classes],
        "ranks": [runs_of(ranks) for ranks in spans.ranks],
    }


def _read_planned(found: RecordFile, classes: tuple[tuple[int, ...], ...]) -> PlannedSpans | None:
    spans = found.planned
    if spans is None:
        return None
    columns = (spans.step, spans.start_us, spans.end_us, spans.arrived_us, spans.executions, spans.classes)
    if len({len(column) for column in columns}) > 1:
        raise RecordError("the columns of planned differ in length")
    if not all(item.isdecimal() and len(item) <= MOST_DIGITS for item in spans.executions):
        raise RecordError(f"planned.executions must be whole numbers of at most {MOST_DIGITS} digits")
    return PlannedSpans(
        tuple(spans.step),
        tuple(spans.start_us),
        tuple(spans.end_us),
        tuple(None if item is None else tuple(item) for item in spans.arrived_us),
        tuple(int(item) for item in spans.executions),
        tuple(tuple(item) for item in spans.classes),
        classes,
    )


MOST_DIGITS = 300


def _fields(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _finite(value: Any) -> Any:
    """JSON has no infinities: they are written as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        return items if all(type(item) is int for item in items) else [_finite(item) for item in items]
    return value


def diagnostic_fields(item: Diagnostic) -> dict[str, Any]:
    """A finding as plain data."""
    return {
        "code": item.code,
        "severity": item.severity.value,
        "message": item.message,
        "hint": item.hint,
        "path": list(item.path),
        "subject": list(item.subject),
    }


def write_record(path: str | Path, record: RunRecord) -> None:
    """Write a record at once; ``.gz`` is packed.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    write_bytes(path, record_bytes(record, str(path)))


def record_bytes(record: RunRecord, name: str) -> bytes:
    """A record as the bytes of a file of that name: packed where it ends in ``.gz``."""
    data = record.to_json().encode()
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data


def read_record(path: str | Path) -> RunRecord:
    """Read a record; a packed one is read through.

    Raises:
        RecordError: the file is none.
        OSError: it cannot be read.
    """
    data = Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(data)
    return RunRecord.from_json(data)


def is_record(path: str | Path) -> bool:
    """Whether a file says that it is a run record; a packed one is looked into.

    Raises:
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if head.startswith(b"\x1f\x8b"):
        with suppress(zlib.error):
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    return _SAYS_RECORD.match(head) is not None


HEAD_BYTES = 4096
_SAYS_RECORD = re.compile(rb'\s*\{\s*"schema"\s*:\s*"dtir\.run-record"')

MOST_BYTES = 1 << 30
"""A packed record may hold so many bytes: what a few bytes unpack to is not believed without end."""


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise RecordError(f"the packed file is damaged: {error}") from None
    if unpacker.unconsumed_tail:
        raise RecordError(f"the packed file holds more than {MOST_BYTES} bytes")
    if not unpacker.eof:
        raise RecordError("the packed file ends before it is complete")
    return found
