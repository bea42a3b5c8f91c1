"""Traces as an input: one file alone is what one rank did."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dtir.importers.base import DEFAULT_LIMITS, Imported, Loader, Source, refused
from dtir.importers.rank_set.joining import join
from dtir.importers.rank_set.readers import READERS
from dtir.schema.diagnostics import Diagnostic
from dtir.schema.result import Err, Ok

TABLE_FORMAT = "comm-group"
TABLE_NAME = "comm_group.json"


def trace_loader(format: str) -> Loader:
    """The loader of one format of traces."""
    return partial(load_trace, format)


def load_trace(format: str, source: Source) -> Imported:
    """The program of one rank; the table of groups that lies beside a Chakra file is used."""
    match READERS[format]()(source):
        case Err(diagnostic):
            return refused(source.label, diagnostic, format=format, digest=source.digest())
        case Ok(trace):
            table, name = table_beside([source.name]) if format.startswith("chakra") else ({}, "")
            return join([trace], table=table, table_name=name)


def load_group_table(source: Source) -> Imported:
    """A table of groups alone is no program."""
    return refused(
        source.label,
        Diagnostic(
            "trace.no_program",
            f"{source.label} lists process groups of Chakra traces and holds no program",
            hint="open it together with the files of the ranks: job.*.et comm_group.json",
        ),
        format=TABLE_FORMAT,
        digest=source.digest(),
    )


def table_beside(names: list[str]) -> tuple[dict[str, tuple[int, ...]], str]:
    """The table of groups in the folder of some files, and its name; empty when there is none."""
    from dtir.importers.chakra import read_group_table

    for folder in dict.fromkeys(Path(name).parent for name in names if name and not name.startswith("<")):
        path = folder / TABLE_NAME
        try:
            if not path.is_file() or path.stat().st_size > DEFAULT_LIMITS.size_bytes:
                continue
            data = path.read_bytes()
            text = data.decode("utf-8")
        except (OSError, ValueError):
            continue
        match read_group_table(Source(str(path), data, text)):
            case Ok(table):
                return table, path.name
            case Err():
                continue
    return {}, ""
