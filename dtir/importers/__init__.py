"""Reading programs that somebody else wrote: recognise the format by content, and import it.

>>> load_bytes(b"", name="empty.json").diagnostics.errors[0].code
'input.empty'

Every fault of an input comes back as a diagnostic in `Imported.diagnostics`; nothing here raises for what a file holds.
A new format is one line in `dtir.importers.detect.FORMATS` and one in `LOADERS`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from dtir.importers.base import DEFAULT_LIMITS, Imported, Limits, Loader, Source, refused
from dtir.importers.collecting import uncollected
from dtir.importers.detect import recognise, refuse_head, unknown, unsupported
from dtir.importers.read import Unpacked, problem, read_path, read_stream
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet, Severity
from dtir.schema.result import Err, Ok, Result

__all__ = [
    "DEFAULT_LIMITS",
    "LOADERS",
    "Imported",
    "Limits",
    "Source",
    "load_bytes",
    "load_path",
    "load_several",
    "load_stream",
    "open_set",
]


def _snapshot_loader() -> Loader:
    from dtir.importers.snapshot import load_snapshot

    return load_snapshot


def _hlo_loader() -> Loader:
    from dtir.importers.hlo_loader import load_hlo

    return load_hlo


def _yaml_loader() -> Loader:
    from dtir.importers.yaml_loader import load_yaml

    return load_yaml


def _stablehlo_loader() -> Loader:
    from dtir.importers.stablehlo_loader import load_stablehlo

    return load_stablehlo


def _trace_loader(format: str) -> Callable[[], Loader]:
    def load() -> Loader:
        from dtir.importers.trace_loader import trace_loader

        return trace_loader(format)

    return load


def _group_table_loader() -> Loader:
    from dtir.importers.trace_loader import load_group_table

    return load_group_table


def _sharding_table_loader() -> Loader:
    from dtir.importers.sharding_table import read_sharding_table

    return read_sharding_table


def _spec_loader() -> Loader:
    from dtir.importers.spec_loader import load_spec

    return load_spec


def _comm_debug_loader() -> Loader:
    from dtir.importers.comm_debug import read_comm_debug

    return read_comm_debug


LOADERS: dict[str, Callable[[], Loader]] = {
    "dtir": _snapshot_loader,
    "upstream": _snapshot_loader,
    "hlo": _hlo_loader,
    "stablehlo": _stablehlo_loader,
    "yaml": _yaml_loader,
    "chakra": _trace_loader("chakra"),
    "chakra-json": _trace_loader("chakra-json"),
    "comm-debug": _comm_debug_loader,
    "comm-group": _group_table_loader,
    "flight-recorder": _trace_loader("flight-recorder"),
    "kineto": _trace_loader("kineto"),
    "mlipspec": _spec_loader,
    "pytorch-et": _trace_loader("pytorch-et"),
    "sharding-table": _sharding_table_loader,
}
"""Format name to what loads its reader; readers are imported when the first input of their format comes."""


def open_set(items: Sequence[str | Path | tuple[str, bytes] | Source], *, limits: Limits = DEFAULT_LIMITS) -> Imported:
    """One program of the files of several ranks: traces named by path, or as (name, bytes) of an upload.

    Ranks that are missing or there twice, groups of unknown members, sizes that differ are among the findings; what could
    be read is in the program. See `dtir.importers.several.open_set`.
    """
    from dtir.importers.several import open_set as opened

    with uncollected():
        return opened(items, limits=limits)


def load_several(
    items: Sequence[str | Path | tuple[str, bytes]], *, limits: Limits = DEFAULT_LIMITS
) -> list[tuple[str, Imported]]:
    """(name, program) of several files at once, given by path or as (name, bytes): traces of the ranks of a job are one.

    See `dtir.importers.several.load_several`.
    """
    from dtir.importers.several import load_several as loaded

    return loaded(items, limits=limits)


def load_path(path: str | Path, *, limits: Limits = DEFAULT_LIMITS) -> Imported:
    """Import a file; ``-`` is standard input, ``.gz`` is read through.

    >>> load_path("no/such/file.hlo").diagnostics.errors[0].code
    'input.not_found'
    """
    if str(path) == "-":
        return load_stream(cast("io.BufferedReader", sys.stdin.buffer), name="<stdin>", limits=limits)
    return _load(str(path), read_path(Path(path), limits, _refuse))


def load_stream(
    stream: io.BufferedReader | io.RawIOBase | io.BytesIO, *, name: str, limits: Limits = DEFAULT_LIMITS
) -> Imported:
    """Import what a binary stream holds up to its end."""
    try:
        result = read_stream(stream, limits, _refuse)
    except OSError as error:
        result = Err(problem("input.unreadable", f"{name} cannot be read: {error}", hint="check where it comes from"))
    return _load(name, result)


def load_bytes(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> Imported:
    """Import bytes in memory, say of an upload; `name` is only a label."""
    return load_stream(io.BytesIO(data), name=name, limits=limits)


def _refuse(head: bytes) -> DiagnosticSet | None:
    return refuse_head(head, LOADERS)


def _load(name: str, result: Result[Unpacked, DiagnosticSet]) -> Imported:
    label = Source(name, b"").label
    match result:
        case Err(diagnostics):
            return refused(label, *diagnostics)
        case Ok(unpacked):
            return _dispatch(name, unpacked)


def _dispatch(name: str, unpacked: Unpacked) -> Imported:
    source = Source(name, unpacked.data)
    known = recognise(unpacked.data)
    readable = known is not None and known.name in LOADERS
    # A reader says in its own words what it makes of cut text; that it is cut is then a remark.
    cut = _truncated(unpacked, Severity.INFO if readable else Severity.ERROR)
    if known is None or not readable:
        found = unsupported(known, LOADERS) if known else unknown(unpacked.data, LOADERS)
        return refused(source.label, *cut, *found, format=known.name if known else "unknown", digest=source.digest())
    if not known.binary:
        try:
            source = Source(name, unpacked.data, unpacked.data.decode("utf-8"))
        except UnicodeDecodeError as error:
            return refused(source.label, _encoding(unpacked.data, error), format=known.name, digest=source.digest())
    with uncollected():
        loaded = LOADERS[known.name]()(source)
    return replace(loaded, diagnostics=DiagnosticSet((*loaded.diagnostics, *cut))) if cut else loaded


def _truncated(unpacked: Unpacked, severity: Severity) -> tuple[Diagnostic, ...]:
    if unpacked.json_open <= 0 and not unpacked.in_string:
        return ()
    where = "inside a string, " if unpacked.in_string else ""
    return (
        Diagnostic(
            "input.truncated",
            f"the JSON text ends {where}with {unpacked.json_open} brackets still open, after {len(unpacked.data)} bytes",
            severity=severity,
            hint="copy or write the file again",
        ),
    )


def _encoding(data: bytes, error: UnicodeDecodeError) -> Diagnostic:
    line = data.count(b"\n", 0, error.start) + 1
    return Diagnostic(
        "input.encoding",
        f"byte {error.start} (line {line}) is 0x{data[error.start]:02x}, which is not UTF-8: {error.reason}",
        hint="save the file as UTF-8",
    )
