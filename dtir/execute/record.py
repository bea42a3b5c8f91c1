"""The run record: what was run, with what, and when every step began and ended.

Schema ``dtir.run-record`` 1.0.0, plain JSON:

| key | what it is |
|---|---|
| `schema`, `version` | as above |
| `complete` | false when the run was interrupted: then the records are those of the steps that were done |
| `program` | `name`, `digest` (of the program's content), `ranks` |
| `backend` | `name`, `library`, `clock`, `wire_bytes` (whether bytes can be counted) |
| `options` | `seed` (null: data from a file), `repetitions`, `warmup`, `timing` (isolated or free), `algorithm`, `skip_local` |
| `environment` | versions, machine, load: enough to tell two runs apart |
| `binding` | the binding, as its own file holds it |
| `steps` | one an entry: `index`, `task` (id), `name`, `region`, `kind`, `operation`, `message_bytes`, `planned_bytes` (of all ranks) |
| `records` | columns of equal length, see `Columns` |
| `totals` | `elapsed_ns` of the measured repetitions, `local_ns`, `communication_ns` |
| `wire` | what went from process to process, where that is counted: `step`, `process`, `peer`, `sent_bytes`, `messages`, in all |
| `values` | what was compared: `value`, `name`, `source`, `max_error`, `bound`, `wrong`, `elements` |
| `findings` | diagnostics |

Times are nanoseconds of one clock; only differences mean something.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from dtir._version import __version__
from dtir.execute.files import write_bytes

SCHEMA, VERSION = "dtir.run-record", "1.0.0"
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
    """A step as a record names it."""

    index: int
    task: str
    name: str
    region: str
    kind: str
    operation: str
    message_bytes: int
    planned_bytes: int


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
class RunRecord:
    """A run record; see the module for the fields."""

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
            "records": {name: getattr(self.records, name) for name in COLUMNS},
            "totals": dict(self.totals),
            "wire": [_fields(entry) for entry in self.wire],
            "values": [_fields(check) for check in self.values],
            "findings": [dict(item) for item in self.findings],
        }
        return json.dumps(_finite(whole), allow_nan=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunRecord:
        """Read a record.

        Raises:
            RecordError: not JSON, another schema or version, a key missing or of another kind, columns of unequal length.
        """
        try:
            whole: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"the run record is no JSON: {error}") from None
        fields = _mapping(whole, "a run record")
        if fields.get("schema") != SCHEMA or fields.get("version") != VERSION:
            raise RecordError(f"found {fields.get('schema')} {fields.get('version')}, wanted {SCHEMA} {VERSION}")
        columns = _columns(_mapping(fields.get("records"), "records"))
        complete = fields.get("complete")
        if not isinstance(complete, bool):
            raise RecordError("complete must be true or false")
        return cls(
            _mapping(fields.get("program"), "program"),
            _mapping(fields.get("backend"), "backend"),
            _mapping(fields.get("options"), "options"),
            _mapping(fields.get("environment"), "environment"),
            _mapping(fields.get("binding"), "binding"),
            tuple(_entry(StepEntry, item, "steps") for item in _items(fields.get("steps"), "steps")),
            columns,
            _mapping(fields.get("totals"), "totals"),
            tuple(_entry(ValueCheck, item, "values") for item in _items(fields.get("values"), "values")),
            tuple(_mapping(item, "findings") for item in _items(fields.get("findings"), "findings")),
            complete,
            tuple(_entry(WireEntry, item, "wire") for item in _items(fields.get("wire", []), "wire")),
        )


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


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordError(f"{what} must be an object")
    return cast("Mapping[str, Any]", value)


def _items(value: object, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise RecordError(f"{what} must be a list")
    return cast("Sequence[Any]", value)


def _columns(fields: Mapping[str, Any]) -> Columns:
    if set(fields) != set(COLUMNS):
        raise RecordError(f"records has the columns {sorted(fields)}, wanted {sorted(COLUMNS)}")
    found = {name: list(_items(fields[name], f"records.{name}")) for name in COLUMNS}
    lengths = {len(column) for column in found.values()}
    if len(lengths) > 1:
        raise RecordError(f"the columns of records differ in length: {sorted(lengths)}")
    for name, column in found.items():
        open_ended = name in ("rank", "sent_bytes", "messages")
        if not all(type(item) is int or (open_ended and item is None) for item in column):
            raise RecordError(f"records.{name} must hold whole numbers" + (" or null" if open_ended else ""))
    return Columns(**found)


def _entry(kind: Any, value: object, what: str) -> Any:
    fields = _mapping(value, f"an entry of {what}")
    names: Mapping[str, Any] = kind.__dataclass_fields__
    if set(fields) != set(names):
        raise RecordError(f"an entry of {what} has {sorted(fields)}, wanted {sorted(names)}")
    converted: dict[str, Any] = {}
    for name, item in fields.items():
        wanted = {"int": int, "str": str, "float": float}[str(names[name].type)]
        number = (
            float(item) if wanted is float and isinstance(item, (int, str)) and not isinstance(item, bool) else item
        )
        if not isinstance(number, wanted) or isinstance(number, bool):
            raise RecordError(f"{name} of an entry of {what} is {item!r}, wanted {wanted.__name__}")
        converted[name] = number
    return kind(**converted)


def environment() -> dict[str, Any]:
    """What tells two machines and installations apart; no name of a person or host is in it."""
    packages = {name: _version(name) for name in ("numpy", "ml_dtypes", "mpi4py", "cupy")}
    found: dict[str, Any] = {
        "dtir": __version__,
        "python": platform.python_version(),
        "packages": {name: found for name, found in packages.items() if found is not None},
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    with suppress(OSError, AttributeError):
        found["load"] = [round(item, 2) for item in os.getloadavg()]
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write_record(path: str | Path, record: RunRecord) -> None:
    """Write a record at once.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    write_bytes(path, record.to_json().encode())


def read_record(path: str | Path) -> RunRecord:
    """Read a record.

    Raises:
        RecordError: the file is none.
        OSError: it cannot be read.
    """
    return RunRecord.from_json(Path(path).read_text(encoding="utf-8"))
