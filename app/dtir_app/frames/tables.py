"""Rows of the four tables: diagnostics, collectives, tasks, tensors; sorted, filtered, one page at a time.

A cell is text. What a column is sorted by are the numbers behind it, so that ``9 KiB`` stands before ``64 KiB``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtir_app.filters import Filters, filter_mask
from dtir_app.frames.table_columns import TABLES, Column
from dtir_app.inferred import at_hand
from dtir_app.kinds import COMMUNICATION
from dtir_app.selection import Selection, of_task, of_value, selection_text
from dtir_app.store import Finding, Store

Rows = npt.NDArray[np.int64]

PAGE_SIZE = 100
KEPT_PAGES = 24
"""Pages whose cells are kept with a program."""
NO_FILTERS = Filters()


def shown_columns(store: Store, table: str) -> tuple[Column, ...]:
    """The columns that say something about a program: one that is empty in every row is left out on screen, never in exports."""

    def make() -> tuple[Column, ...]:
        rows = base_rows(store, table).tolist()
        return tuple(column for column in TABLES[table] if not rows or any(column.cell(store, row) for row in rows))

    return store.memo.made(("columns", table, at_hand(store) is not None), make)


def base_rows(store: Store, table: str) -> Rows:
    """All rows of a table, unfiltered, in program order."""
    match table:
        case "diagnostics":
            return np.arange(len(store.findings))
        case "collectives":
            return np.flatnonzero(np.isin(store.tasks.family, list(COMMUNICATION)))
        case "tasks":
            return np.arange(len(store.tasks))
        case "tensors":
            return np.arange(len(store.values))
        case _:
            raise ValueError(f"table={table!r} (str) is not one of {', '.join(TABLES)}")


def filtered_rows(store: Store, table: str, filters: Filters) -> Rows:
    """The rows that the filters keep. Tensors are kept with a task that makes or uses them."""
    rows = base_rows(store, table)
    if not filters.active:
        return rows
    mask = filter_mask(store, filters)
    match table:
        case "diagnostics":
            return np.array(
                [row for row in rows.tolist() if _keeps_finding(store.findings[row], filters, mask)], dtype=np.int64
            )
        case "tensors":
            return rows[_value_mask(store, mask)]
        case _:
            return rows[mask[rows]]


def _keeps_finding(finding: Finding, filters: Filters, mask: npt.NDArray[np.bool_]) -> bool:
    if filters.severities and finding.severity not in filters.severities:
        return False
    return not finding.tasks or any(mask[index] for index in finding.tasks)


def _value_mask(store: Store, task_mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    kept = np.zeros(len(store.values), dtype=bool)
    for index in np.flatnonzero(task_mask).tolist():
        record, scope = store.task_records[index], int(store.tasks.scope[index])
        for name in (*record.inputs, *record.outputs):
            value = store.value_at(scope, name.value)
            if value >= 0:
                kept[value] = True
    return kept


def sorted_rows(store: Store, table: str, filters: Filters, sort: str = "", descending: bool = False) -> Rows:
    """Filtered rows in order of a column; program order within equal cells, missing numbers always last."""
    rows = filtered_rows(store, table, filters)
    column = next((item for item in TABLES[table] if item.key == sort), None)
    if column is None or not len(rows):
        return rows
    values = _sort_values(store, table, column)[rows]
    if values.dtype.kind == "f":
        keyed = np.where(np.isnan(values), np.inf, -values if descending else values)
    else:
        _, codes = np.unique(values, return_inverse=True)
        keyed = -codes if descending else codes
    return rows[np.lexsort((np.arange(len(rows)), keyed))]


def _sort_values(store: Store, table: str, column: Column) -> npt.NDArray[np.generic]:
    """What a column is sorted by, of all rows; made once a program."""

    def make() -> npt.NDArray[np.generic]:
        values = np.asarray(column.sort(store))
        return values.astype(str) if values.dtype.kind in "OU" else values

    return store.memo.made(("sort", table, column.key, at_hand(store) is not None), make)


def row_key(store: Store, table: str, row: int) -> str:
    """What a click on a row selects: the text of a selection; a finding is named by its number too."""
    match table:
        case "diagnostics":
            finding = store.findings[row]
            if finding.tasks:
                return selection_text(store, of_task(finding.tasks[0]))
            return selection_text(store, of_value(finding.values[0])) if finding.values else ""
        case "tensors":
            return selection_text(store, of_value(row))
        case _:
            return selection_text(store, of_task(row))


def table_page(
    store: Store,
    table: str,
    *,
    filters: Filters = NO_FILTERS,
    sort: str = "",
    descending: bool = False,
    page: int = 0,
    page_size: int = PAGE_SIZE,
) -> dict[str, object]:
    """One page of a table as plain data: ``columns``, ``rows`` (key, number, cells), ``total``, ``all``, ``page``, ``pages``."""
    columns = shown_columns(store, table)
    rows = sorted_rows(store, table, filters, sort, descending)
    pages = max(1, -(-len(rows) // page_size))
    page = min(max(0, page), pages - 1)
    shown = rows[page * page_size : (page + 1) * page_size].tolist()
    # A page is asked for anew with every selection, which changes nothing in it.
    key = ("rows", table, at_hand(store) is not None, tuple(shown))
    made = store.memo.made(
        key,
        lambda: [
            {"key": row_key(store, table, row), "row": row, "cells": [item.cell(store, row) for item in columns]}
            for row in shown
        ],
    )
    store.memo.forget_oldest("rows", KEPT_PAGES)
    return {
        "table": table,
        "columns": [{"key": item.key, "label": item.label, "look": item.look, "help": item.help} for item in columns],
        "rows": made,
        "total": len(rows),
        "all": len(base_rows(store, table)),
        "page": page,
        "pages": pages,
        "sort": sort,
        "descending": descending,
    }


def page_of(rows: Rows, row: int, page_size: int = PAGE_SIZE) -> int:
    """The page on which a row stands; -1 when it is filtered out."""
    found = np.flatnonzero(rows == row)
    return int(found[0]) // page_size if len(found) else -1


def row_of(store: Store, table: str, selection: Selection) -> int:
    """The row of a table that shows a selection, or -1."""
    match table:
        case "tensors":
            return selection.value
        case "tasks":
            return selection.task
        case "collectives":
            task = selection.task
            return task if task >= 0 and int(store.tasks.family[task]) in {int(item) for item in COMMUNICATION} else -1
        case _:
            return -1
