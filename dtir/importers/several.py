"""Several files at once: the files of the ranks of one job are one program, any other file is one of its own.

>>> chakra, hlo = Sniffed("chakra"), Sniffed("hlo")
>>> [opened.name for opened in group([("job.0.et", chakra), ("job.1.et", chakra), ("mlp.hlo", hlo)])]
['job.0.et', 'mlp.hlo']
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dtir.importers.base import DEFAULT_LIMITS, Imported, Limits, Source, refused
from dtir.importers.detect import HEAD_BYTES, recognise, refuse_head
from dtir.importers.rank_set.events import RankTrace
from dtir.importers.rank_set.naming import rank_in_name, set_name
from dtir.importers.rank_set.readers import READERS
from dtir.importers.read import GZIP_MAGIC, Unpacked, read_path, read_stream
from dtir.importers.trace_loader import TABLE_FORMAT, table_beside
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Err, Ok, Result

Item: TypeAlias = str | Path | tuple[str, bytes] | Source
"""A file: its path, its name and bytes (an upload), or what was read of it."""

RANK_FORMATS = frozenset({*READERS, TABLE_FORMAT})
"""Formats of files that are opened together."""

_JOB = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*"world_size"\s*:\s*(\d{1,9})')


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What the beginning of a file says: its format, and of a profile the size of its job; None: not known."""

    format: str | None
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """Files that are opened as one program.

    Args:
        name: what to call them: the first file.
        files: their names, in the order in which they were given.
        joined: whether they are files of ranks, to be opened by `open_set`.
    """

    name: str
    files: tuple[str, ...]
    joined: bool


def sniff(path: str | Path) -> Sniffed:
    """What the beginning of a file says; nothing of what cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return sniff_bytes(_head(stream))
    except (OSError, ValueError):
        return Sniffed(None)


def sniff_bytes(data: bytes) -> Sniffed:
    """What the beginning of some bytes says."""
    head = _head(io.BytesIO(data)) if data[:2] == GZIP_MAGIC else data[:HEAD_BYTES]
    known = recognise(head)
    job = _JOB.search(head) if known is not None and known.name == "kineto" else None
    return Sniffed(known.name if known else None, job and job[1].decode())


def _head(stream: io.BufferedReader | io.BytesIO) -> bytes:
    """The first bytes, unpacked; of damaged data what can be unpacked."""
    start = stream.read(2)
    stream.seek(0)
    if start != GZIP_MAGIC:
        return stream.read(HEAD_BYTES)
    unpacked = zlib.decompressobj(wbits=31)
    try:
        return unpacked.decompress(stream.read(HEAD_BYTES), HEAD_BYTES)
    except zlib.error:
        return b""


def files_in(folder: str | Path) -> list[str]:
    """The trace files of a folder, and tables that go with them, by name; empty when there are none."""
    try:
        names = sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError:
        return []
    found = [(str(path), sniff(path).format) for path in names]
    traces = [name for name, format in found if format in READERS]
    return [name for name, format in found if format in RANK_FORMATS] if traces else []


def group(files: Sequence[tuple[str, Sniffed]]) -> list[Together]:
    """Which files are opened together.

    Files of ranks of one format are one set. They are several sets where their names without the ranks differ, and every
    such name stands for two files or more: the files of two jobs, say. Profiles whose names state no rank belong together
    when they say that they are of jobs of one size.

    Args:
        files: names with what their beginnings say.
    """
    by_format: dict[str, list[tuple[str, Sniffed]]] = {}
    for name, seen in files:
        if seen.format in READERS:
            by_format.setdefault(seen.format, []).append((name, seen))
    sets: dict[str, Together] = {}
    tables = [name for name, seen in files if seen.format == TABLE_FORMAT]
    for format, own_files in by_format.items():
        for own in _jobs(own_files):
            more = tuple(tables) if format.startswith("chakra") else ()
            made = Together(own[0], (*own, *more), len(own) + len(more) > 1)
            sets.update(dict.fromkeys(own, made))
    if any(format.startswith("chakra") for format in by_format):
        sets.update({name: Together("", (), False) for name in tables})
    found: list[Together] = []
    done: set[int] = set()
    for name, _ in files:
        made = sets.get(name)
        if made is None:
            found.append(Together(name, (name,), False))
        elif made.files and id(made) not in done:
            done.add(id(made))
            found.append(made)
    return found


def _jobs(files: Sequence[tuple[str, Sniffed]]) -> list[list[str]]:
    named: dict[str, list[str]] = {}
    stated: dict[str, list[str]] = {}
    for name, seen in files:
        if seen.format != "kineto" or rank_in_name(name) is not None:
            # Time stamps differ from rank to rank.
            named.setdefault(_STAMP.sub("", set_name(name)), []).append(name)
        else:
            stated.setdefault(seen.job or f"alone: {name}", []).append(name)
    jobs = list(named.values())
    if len(jobs) > 1 and not all(len(own) > 1 for own in jobs):
        jobs = [[name for own in jobs for name in own]]
    return [*jobs, *stated.values()]


_STAMP = re.compile(r"\d{8,}")


def load_several(
    items: Sequence[str | Path | tuple[str, bytes]], *, limits: Limits = DEFAULT_LIMITS
) -> list[tuple[str, Imported]]:
    """What several files hold, say those that were dropped onto a page at once: traces of the ranks of a job as one program.

    Args:
        items: paths, or (name, bytes) pairs.
        limits: of each file.

    Returns:
        (name, program) in the order in which the first file of each was given.
    """
    from dtir.importers import load_bytes, load_path

    by_name: dict[str, list[str | Path | tuple[str, bytes]]] = {}
    named: list[tuple[str, Sniffed]] = []
    for item in items:
        name = item[0] if isinstance(item, tuple) else str(item)
        by_name.setdefault(name, []).append(item)
        named.append((name, sniff_bytes(item[1]) if isinstance(item, tuple) else sniff(item)))
    found: list[tuple[str, Imported]] = []
    for one in group(named):
        members = [by_name[name].pop(0) for name in one.files]
        if one.joined:
            found.append((one.name, open_set(members, limits=limits)))
        else:
            (item,) = members
            alone = (
                load_bytes(item[1], name=item[0], limits=limits)
                if isinstance(item, tuple)
                else load_path(item, limits=limits)
            )
            found.append((one.name, alone))
    return found


def open_set(items: Sequence[Item], *, limits: Limits = DEFAULT_LIMITS) -> Imported:
    """One program of the files of several ranks, each with its issue order.

    Args:
        items: paths, or (name, bytes) pairs; a table of process groups (``comm_group.json``) may be among them, and is
            looked for beside paths when it is not.
        limits: of each file.

    Returns:
        The program. Files that could not be read, ranks that are missing or there twice are among its findings.

    >>> open_set([]).diagnostics.errors[0].code
    'trace.empty_set'
    """
    from dtir.importers.chakra import read_group_table
    from dtir.importers.rank_set.joining import join

    traces: list[RankTrace] = []
    findings: list[Diagnostic] = []
    table: dict[str, tuple[int, ...]] = {}
    table_name, format = "", "unknown"
    for item in items:
        name, unpacked = _read(item, limits)
        match unpacked:
            case Err(diagnostics):
                findings += (found.prefixed("files", name) for found in diagnostics)
                continue
            case Ok(source):
                pass
        known = recognise(source.data)
        reader = READERS.get(known.name) if known else None
        if known is not None and known.name == TABLE_FORMAT:
            match read_group_table(source):
                case Ok(found):
                    table, table_name = found, source.label
                case Err(diagnostic):
                    findings.append(diagnostic.prefixed("files", source.label))
        elif known is None or reader is None:
            what = known.what if known else "of no known format"
            findings.append(
                Diagnostic(
                    "trace.not_of_set",
                    f"{source.label} is {what}, no trace of a rank; it is left out",
                    ("files", source.label),
                    hint="open it alone",
                )
            )
        else:
            format = known.name
            match reader()(source):
                case Ok(trace):
                    traces.append(trace)
                case Err(diagnostic):
                    findings.append(diagnostic.prefixed("files", source.label))
    if not traces:
        findings = findings or [
            Diagnostic("trace.empty_set", "no file of a rank was given", hint="name the files of all ranks")
        ]
        return refused(f"{len(items)} files", *findings, format=format)
    if not table and format.startswith("chakra"):
        table, table_name = table_beside([str(item) for item in items if isinstance(item, (str, Path))])
    return join(traces, table=table, table_name=table_name, before=findings)


def _read(item: Item, limits: Limits) -> tuple[str, Result[Source, DiagnosticSet]]:
    match item:
        case Source():
            return item.label, Ok(item)
        case (str() as name, bytes() as data):
            return _as_source(name, read_stream(io.BytesIO(data), limits, _refuse))
        case _:
            return _as_source(str(item), read_path(Path(str(item)), limits, _refuse))


def _as_source(name: str, unpacked: Result[Unpacked, DiagnosticSet]) -> tuple[str, Result[Source, DiagnosticSet]]:
    label = Source(name, b"").label
    match unpacked:
        case Err(diagnostics):
            return label, Err(diagnostics)
        case Ok(found):
            return label, Ok(Source(name, found.data, _text(found.data)))


def _text(data: bytes) -> str | None:
    """The bytes as text; a byte that is none stands as a mark, so that the JSON around it is still read."""
    known = recognise(data)
    return None if known is not None and known.binary else data.decode("utf-8", "replace")


def _refuse(head: bytes) -> DiagnosticSet | None:
    return refuse_head(head, RANK_FORMATS)
