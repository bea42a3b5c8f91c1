from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from dtir_app.filters import Filters
from dtir_app.frames.export import table_csv, table_json
from dtir_app.frames.table_columns import TABLES
from dtir_app.frames.tables import PAGE_SIZE, base_rows, page_of, row_of, shown_columns, sorted_rows, table_page
from dtir_app.gallery import examples
from dtir_app.selection import find_selection, of_task, of_value

from dtir.ir.tasks import LocalCompute
from tests.app.build import store_of, store_of_example
from tests.helpers.programs import mesh_of, program, task

NAMES = [item.name for item in examples()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table", TABLES)
def test_pages_hold_every_row_once(name: str, table: str) -> None:
    store = store_of_example(name)
    first = table_page(store, table)
    rows = [
        row["row"] for page in range(int(str(first["pages"]))) for row in table_page(store, table, page=page)["rows"]
    ]
    assert rows == base_rows(store, table).tolist()
    assert all(len(row["cells"]) == len(first["columns"]) for row in first["rows"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table", TABLES)
def test_every_column_sorts_both_ways(name: str, table: str) -> None:
    store = store_of_example(name)
    for column in TABLES[table]:
        up = sorted_rows(store, table, Filters(), column.key)
        down = sorted_rows(store, table, Filters(), column.key, descending=True)
        assert sorted(up.tolist()) == sorted(down.tolist()) == base_rows(store, table).tolist()


def test_sizes_sort_by_number_and_unknown_ones_stand_last() -> None:
    store = store_of_example("transformer_train")
    for descending in (False, True):
        rows = sorted_rows(store, "tasks", Filters(), "message_bytes", descending)
        sizes = store.tasks.message_bytes[rows]
        known = sizes[~np.isnan(sizes)]
        assert np.isnan(sizes[len(known) :]).all()
        assert (np.diff(known) * (-1 if descending else 1) >= 0).all()


def test_equal_cells_keep_program_order() -> None:
    store = store_of_example("transformer_train")
    rows = sorted_rows(store, "collectives", Filters(), "kind", descending=True)
    assert rows.tolist() == sorted(rows.tolist())


def test_a_row_names_what_a_click_selects() -> None:
    store = store_of_example("faults")
    for table in ("collectives", "tasks", "tensors"):
        for row in table_page(store, table)["rows"]:
            selection = find_selection(store, row["key"])
            assert row_of(store, table, selection) == row["row"]
    diagnostics = table_page(store, "diagnostics")["rows"]
    assert [find_selection(store, row["key"]).task for row in diagnostics] == [item.tasks[0] for item in store.findings]


def test_the_page_of_a_row() -> None:
    rows = np.arange(1000)
    assert page_of(rows, 250, 100) == 2
    assert page_of(rows, 5000) == -1
    store = store_of_example("transformer_train")
    last = len(store.tasks) - 1
    page = page_of(sorted_rows(store, "tasks", Filters()), last)
    assert page == last // PAGE_SIZE
    assert table_page(store, "tasks", page=10**6)["page"] == page


def test_filters_leave_out_and_are_counted() -> None:
    store = store_of_example("faults")
    only = Filters(kinds=frozenset({"all_gather"}))
    page = table_page(store, "tasks", filters=only)
    assert (page["total"], page["all"]) == (1, 8)
    assert [row["cells"][1] for row in table_page(store, "tensors", filters=only)["rows"]] == ["a", "wide"]
    assert [store.findings[row].code for row in sorted_rows(store, "diagnostics", only)] == ["collective.gather_dim"]


def test_an_empty_column_is_left_out_on_screen_only() -> None:
    store = store_of_example("llama_block")
    shown = {column.key for column in shown_columns(store, "collectives")}
    assert "region" not in shown
    assert "region" in table_csv(store, "collectives", Filters(), "", False).splitlines()[0]


def test_a_task_that_is_no_communication_has_no_row_among_them() -> None:
    store = store_of_example("faults")
    assert row_of(store, "collectives", of_task(0)) == -1
    assert row_of(store, "tasks", of_value(0)) == -1
    assert row_of(store, "diagnostics", of_task(0)) == -1


@pytest.mark.parametrize("table", TABLES)
def test_csv_and_json_hold_the_rows_in_order(table: str) -> None:
    store = store_of_example("scan_layers")
    rows = sorted_rows(store, table, Filters(), TABLES[table][1].key, True).tolist()
    read = list(csv.DictReader(io.StringIO(table_csv(store, table, Filters(), TABLES[table][1].key, True))))
    made = json.loads(table_json(store, table, Filters(), TABLES[table][1].key, True))
    assert len(read) == len(rows) == made["total"] == len(made["rows"])
    assert made["digest"] == store.digest
    if table == "collectives":
        assert [int(row["index"]) for row in read] == rows == [row["index"] for row in made["rows"]]
        assert [row["message_bytes"] for row in made["rows"]] == [int(store.tasks.message_bytes[row]) for row in rows]


def test_a_cell_is_never_a_formula() -> None:
    mesh = mesh_of(tp=2)
    names = ("=1+1", "+x", "-x", "@x", "plain", '=HYPERLINK("http://x")')
    tasks = tuple(task(name, mesh, LocalCompute()) for name in names)
    store = store_of(program(mesh, tasks=tasks, values=(), inputs=(), outputs=()))
    read = list(csv.DictReader(io.StringIO(table_csv(store, "tasks", Filters(), "", False))))
    assert [row["name"] for row in read] == ["'=1+1", "'+x", "'-x", "'@x", "plain", '\'=HYPERLINK("http://x")']
    assert [row["name"] for row in json.loads(table_json(store, "tasks", Filters(), "", False))["rows"]] == list(names)
