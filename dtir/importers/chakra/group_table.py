"""The table of process groups that lies beside Chakra traces: ``comm_group.json``, ``{"0": [ranks], ...}``."""

from __future__ import annotations

from dtir.importers.base import Source
from dtir.importers.rank_set.plain import mapping, parse_json, ranks_of
from dtir.schema.diagnostics import Diagnostic
from dtir.schema.result import Err, Ok, Result

TABLE_FORMAT = "comm-group"
TABLE_NAME = "comm_group.json"


def read_group_table(source: Source) -> Result[dict[str, tuple[int, ...]], Diagnostic]:
    """Members of every group, in group order; entries that are no lists of ranks are refused as a whole."""
    match parse_json(source.text or "", "the table of process groups"):
        case Err(error):
            return Err(error)
        case Ok(value):
            whole = mapping(value)
    found: dict[str, tuple[int, ...]] = {}
    for name, item in whole.items():
        members = ranks_of(item)
        if members is None:
            return Err(
                Diagnostic(
                    "trace.malformed",
                    f"group {name!r} of the table of process groups is no list of ranks",
                    (name or "''",),
                    hint='write {"0": [0, 1], "1": [2, 3]}',
                )
            )
        found[name] = members
    return Ok(found)
