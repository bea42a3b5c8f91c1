"""Which process and device each virtual rank gets: a file beside the program, never part of it.

```json
{"schema": "dtir.binding", "version": "1.0.0", "backend": "mpi", "processes": 2,
 "ranks": [{"rank": 0, "process": 0, "device": null}, {"rank": 1, "process": 1, "device": null}]}
```
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

SCHEMA, VERSION = "dtir.binding", "1.0.0"
_RANKS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


class BindingError(ValueError):
    """A binding does not fit the program or the machine, or its file cannot be read; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where one rank lives."""

    process: int
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """Where every rank lives.

    Args:
        backend: name of the back end.
        seats: one a rank, in rank order.

    **Constraints**: processes are numbered 0, 1, ... without gaps; each has at least one rank.
    """

    backend: str
    seats: tuple[Seat, ...]

    def __post_init__(self) -> None:
        used = sorted({seat.process for seat in self.seats})
        if used != list(range(len(used))):
            raise BindingError(f"processes must be numbered 0 to n - 1 and each have a rank, got {used[:8]}")

    @property
    def processes(self) -> int:
        """Number of processes."""
        return len({seat.process for seat in self.seats})

    def ranks_of(self, process: int) -> tuple[int, ...]:
        """The ranks of a process, ascending."""
        return tuple(rank for rank, seat in enumerate(self.seats) if seat.process == process)

    def to_json(self) -> str:
        """The binding as a file holds it."""
        ranks = [{"rank": rank, "process": seat.process, "device": seat.device} for rank, seat in enumerate(self.seats)]
        whole = {
            "schema": SCHEMA,
            "version": VERSION,
            "backend": self.backend,
            "processes": self.processes,
            "ranks": ranks,
        }
        return json.dumps(whole, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Binding:
        """Read a binding.

        Raises:
            BindingError: not JSON, another schema, a rank twice or missing, or numbers that are none.
        """
        try:
            whole: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BindingError(f"the binding is no JSON: {error}") from None
        if not isinstance(whole, Mapping):
            raise BindingError("a binding is a JSON object")
        fields = cast("Mapping[str, Any]", whole)
        if fields.get("schema") != SCHEMA or fields.get("version") != VERSION:
            found = f"{fields.get('schema')} {fields.get('version')}"
            raise BindingError(f"the file is {found}, wanted {SCHEMA} {VERSION}")
        unknown = set(fields) - {"schema", "version", "backend", "processes", "ranks"}
        rows = fields.get("ranks")
        backend = fields.get("backend")
        if unknown or not isinstance(backend, str) or not isinstance(rows, Sequence) or isinstance(rows, str):
            raise BindingError("a binding has the keys schema, version, backend, processes and ranks, a list")
        seats: dict[int, Seat] = {}
        for row in cast("Sequence[object]", rows):
            rank, seat = _seat(row)
            if rank in seats:
                raise BindingError(f"rank {rank} is bound twice")
            seats[rank] = seat
        if sorted(seats) != list(range(len(seats))):
            raise BindingError(f"ranks must be 0 to n - 1, got {sorted(seats)[:8]}")
        return cls(backend, tuple(seats[rank] for rank in range(len(seats))))


def _seat(row: object) -> tuple[int, Seat]:
    if not isinstance(row, Mapping):
        raise BindingError("every entry of ranks is an object with rank, process and device")
    fields = cast("Mapping[str, Any]", row)
    rank, process, device = fields.get("rank"), fields.get("process"), fields.get("device")
    if set(fields) - {"rank", "process", "device"} or not _natural(rank) or not _natural(process):
        raise BindingError(f"an entry of ranks needs whole numbers rank and process, got {dict(fields)}")
    if device is not None and not _natural(device):
        raise BindingError(f"the device of rank {rank} is {device!r}, wanted a whole number or null")
    return cast("int", rank), Seat(cast("int", process), cast("int | None", device))


def _natural(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def spread(backend: str, ranks: int, processes: int, devices: int | None = None) -> Binding:
    """Ranks in order over processes, as evenly as possible; devices in turn within a process.

    Raises:
        BindingError: more processes than ranks, or none.

    >>> [seat.process for seat in spread("mpi", 5, 2).seats]
    [0, 0, 0, 1, 1]
    """
    if processes < 1:
        raise BindingError(f"processes={processes} must be at least 1")
    if processes > ranks:
        raise BindingError(
            f"{processes} processes are more than the program's {ranks} ranks: start at most {ranks}, each hosts a rank"
        )
    wide = ranks % processes
    each = ranks // processes
    seats: list[Seat] = []
    for process in range(processes):
        count = each + (process < wide)
        seats += [Seat(process, None if devices is None else number % devices) for number in range(count)]
    return Binding(backend, tuple(seats))


def in_turn(backend: str, ranks: int, processes: int) -> Binding:
    """Ranks dealt to processes one after the other, so that neighbours live apart.

    Raises:
        BindingError: more processes than ranks, or none.

    >>> [seat.process for seat in in_turn("mpi", 5, 2).seats]
    [0, 1, 0, 1, 0]
    """
    spread(backend, ranks, processes)
    return Binding(backend, tuple(Seat(rank % processes) for rank in range(ranks)))


def from_groups(backend: str, text: str, ranks: int) -> Binding:
    """The ranks of every process as people write them: ``0 1 | 2-4``, process 0 first.

    Args:
        ranks: of the program; every one is to be named once.

    Raises:
        BindingError: something that is no rank or range of ranks, a rank twice, missing or beyond the last one.

    >>> [seat.process for seat in from_groups("mpi", "0 3 | 1-2", 4).seats]
    [0, 1, 1, 0]
    """
    seats: dict[int, Seat] = {}
    for process, group in enumerate(text.split("|")):
        for word in group.replace(",", " ").split():
            found = _RANKS.fullmatch(word)
            if found is None:
                raise BindingError(f"{word!r} is no rank or range of ranks, such as 3 or 0-3")
            first, last = int(found[1]), int(found[2] or found[1])
            if last < first or last >= ranks:
                raise BindingError(f"{word!r} is not within the program's ranks 0 to {ranks - 1}")
            for rank in range(first, last + 1):
                if rank in seats:
                    raise BindingError(f"rank {rank} is bound twice")
                seats[rank] = Seat(process)
    missing = [rank for rank in range(ranks) if rank not in seats]
    if missing:
        raise BindingError(f"{len(missing)} of {ranks} ranks have no process: {missing[:8]}")
    return Binding(backend, tuple(seats[rank] for rank in range(ranks)))


def require_fit(binding: Binding, ranks: int) -> None:
    """Raise unless a binding is for a program of so many ranks.

    Raises:
        BindingError: with both numbers.
    """
    if len(binding.seats) != ranks:
        raise BindingError(f"the binding is for {len(binding.seats)} ranks, the program has {ranks}")
