"""Tables as CSV and JSON: every row that the filters keep, in the order shown, numbers as numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from dtir_app.filters import Filters
from dtir_app.frames.table_columns import TABLES, Column
from dtir_app.frames.tables import row_key, sorted_rows
from dtir_app.store import Store


def _raw(column: Column, store: Store, row: int) -> object:
    return column.raw(store, row) if column.raw else column.cell(store, row)


def _neutral(cell: object) -> object:
    """A cell that a spreadsheet does not take for a formula: program text is not to be trusted."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{cell}"
    return cell


def table_csv(store: Store, table: str, filters: Filters, sort: str, descending: bool) -> str:
    """The table as CSV with a heading line; the last column is the id that links use."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = TABLES[table]
    writer.writerow([*(column.key for column in columns), "id"])
    for row in sorted_rows(store, table, filters, sort, descending).tolist():
        writer.writerow([*(_neutral(_raw(column, store, row)) for column in columns), row_key(store, table, row)])
    return out.getvalue()


def selection_json(store: Store, content: Mapping[str, Any]) -> str:
    """What the inspector says of the selection, as a JSON object: the sections with their rows, and where they come from."""
    return json.dumps({"program": store.name, "digest": store.digest, **content}, ensure_ascii=False, indent=1)


def selection_csv(content: Mapping[str, Any]) -> str:
    """The same as CSV: a line for each row of the inspector."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["section", "label", "text", "note"])
    for section in content.get("sections", []):
        for row in section["rows"]:
            text = row["text"] or " ".join(link["text"] for link in row["links"])
            writer.writerow([_neutral(cell) for cell in (section["title"], row["label"], text, row["note"])])
        for cell in section.get("strip", []):
            writer.writerow([_neutral(text) for text in (section["title"], f"rank {cell['rank']}", cell["text"], "")])
    return out.getvalue()


def table_json(store: Store, table: str, filters: Filters, sort: str, descending: bool) -> str:
    """The table as a JSON object: where it comes from, and its rows."""
    rows = [
        {**{column.key: _raw(column, store, row) for column in TABLES[table]}, "id": row_key(store, table, row)}
        for row in sorted_rows(store, table, filters, sort, descending).tolist()
    ]
    head = {
        "program": store.name,
        "digest": store.digest,
        "table": table,
        "filtered": filters.active,
        "total": len(rows),
    }
    return json.dumps({**head, "rows": rows}, ensure_ascii=False, indent=1)
