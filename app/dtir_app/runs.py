"""The runs that a server knows, by the digest of the program that was run: records given with the files, dropped, or made here.

As with programs, whoever can open a program sees its runs. A few are kept for each; the oldest is let go first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from dtir.execute.record import RecordError, RunRecord, is_record, read_record
from dtir_app.measuring import digest_of, run_label

KEPT = 8
PROGRAMS = 32


@dataclass(frozen=True, slots=True)
class Attached:
    """A run of a program.

    Args:
        key: what the explorer knows it by.
        label: for people.
        record: the record.
        when: of the run or of its file.
    """

    key: str
    label: str
    record: RunRecord = field(repr=False)
    when: str


def apart(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Files that are programs, or fail as such, and files that say that they are run records."""
    programs: list[Path] = []
    records: list[Path] = []
    for path in paths:
        try:
            (records if is_record(path) else programs).append(path)
        except OSError:
            programs.append(path)
    return programs, records


def looks_like_record(content: bytes) -> bool:
    """Whether dropped bytes say that they are a run record."""
    return b'"dtir.run-record"' in content[:4096].replace(b" ", b"")


class Runs:
    """Runs by program.

    Args:
        paths: records to read when the first program is opened.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._lock = threading.Lock()
        self._unread = list(paths)
        self._known: OrderedDict[str, OrderedDict[str, Attached]] = OrderedDict()
        self._number = 0
        self.problems: list[str] = []

    @property
    def any(self) -> bool:
        """Whether there is a run, read or not."""
        return bool(self._unread or self._known)

    def read(self) -> None:
        """Read the files that were given; what cannot be read is noted in `problems`."""
        with self._lock:
            paths, self._unread = self._unread, []
        for path in paths:
            try:
                record = read_record(path)
                when = datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
            except (RecordError, OSError, ValueError) as error:
                self.problems.append(f"{path.name} cannot be read: {error}")
                continue
            self.add(record, f"file of {when}", name=path.name)

    def add(self, record: RunRecord, when: str, *, name: str = "") -> Attached:
        """Keep a run."""
        with self._lock:
            self._number += 1
            label = run_label(record, when)
            found = Attached(f"run{self._number}", f"{name}: {label}" if name else label, record, when)
            mine = self._known.setdefault(digest_of(record), OrderedDict())
            mine[found.key] = found
            while len(mine) > KEPT:
                mine.popitem(last=False)
            self._known.move_to_end(digest_of(record))
            while len(self._known) > PROGRAMS:
                self._known.popitem(last=False)
            return found

    def of(self, digest: str) -> tuple[Attached, ...]:
        """The runs of a program, oldest first."""
        with self._lock:
            return tuple(self._known.get(digest, {}).values())

    def others(self, digest: str) -> tuple[Attached, ...]:
        """The runs of other programs."""
        with self._lock:
            return tuple(item for known, runs in self._known.items() if known != digest for item in runs.values())


def refusal_text(record: RunRecord, name: str, program: str, digest: str) -> str:
    """Why a record does not belong to a program: both names and digests."""
    other = record.program
    return (
        f"{name} is the record of another program: it ran {other.get('name', '?')} ({digest_of(record)}), "
        f"open is {program} ({digest})."
    )
