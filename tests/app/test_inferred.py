"""What follows for per-rank data is said of axes that say nothing themselves, and marked as inferred."""

from __future__ import annotations

import numpy as np
import pytest
from dtir_app.filters import Filters
from dtir_app.frames.inspect_value import inspect_value
from dtir_app.frames.tables import shown_columns, table_page
from dtir_app.frames.tensors import tensor_bar, tensor_maps
from dtir_app.gallery import examples
from dtir_app.inferred import at_hand, inferred
from dtir_app.kinds import KIND_INDEX
from dtir_app.selection import of_value
from dtir_app.store import Store

from tests.app.build import store_of, store_of_example
from tests.helpers.programs import mesh_of, program


@pytest.fixture(scope="module")
def store() -> Store:
    return store_of_example("transformer_train")


@pytest.mark.parametrize("name", [item.name for item in examples()])
def test_only_axes_that_say_nothing_are_inferred(name: str) -> None:
    one = store_of_example(name)
    for value, states in inferred(one).states.items():
        sharding = one.value_records[value].sharding
        for axis, state in states.items():
            assert axis in sharding.varying or axis in sharding.replicated_axes
            assert inferred(one).reasons[value, axis]
            assert state.split()[0] in ("replicated", "partial", "split")


def test_an_all_reduce_takes_what_is_pending_and_gives_copies(store: Store) -> None:
    found = inferred(store)
    reduces = np.flatnonzero(store.tasks.kind == KIND_INDEX["all_reduce"])
    seen = 0
    for task in reduces.tolist():
        record, scope = store.task_records[task], int(store.tasks.scope[task])
        axes = store.tasks.group_axes[task].axes
        operand, result = store.value_at(scope, record.inputs[0].value), store.value_at(scope, record.outputs[0].value)
        for axis in axes:
            assert found.of(result)[axis] == "replicated"
            assert found.of(operand)[axis] in ("partial sum", "partial max", "replicated")
            seen += found.of(operand)[axis].startswith("partial")
    assert seen > 20


def test_gathers_and_scatters_split() -> None:
    store = store_of_example("fsdp")
    states = [state for by_axis in inferred(store).states.values() for state in by_axis.values()]
    assert "split 0" in states
    assert "partial sum" in states


def test_what_says_everything_itself_needs_no_inference() -> None:
    assert inferred(store_of(program(mesh_of(dp=2, tp=4)))).states == {}


def test_inspector_table_and_shard_map_mark_it(store: Store) -> None:
    found = inferred(store)
    assert at_hand(store) is found
    value = next(value for value in found.states if found.text(value) == "axis1: partial sum")
    layout = next(section for section in inspect_value(store, value)["sections"] if section["title"] == "Layout")
    notes = {row["label"]: row["note"] for row in layout["rows"]}
    assert notes["axis1"].startswith("inferred: partial sum, since all-reduce")
    columns = [column.key for column in shown_columns(store, "tensors")]
    page = table_page(store, "tensors", filters=Filters(), page=value // 100)
    row = next(row for row in page["rows"] if row["row"] == value)
    assert row["cells"][columns.index("inferred")] == "axis1: partial sum"
    copies = next(value for value in found.states if found.text(value) == "axis0: replicated")
    maps = tensor_maps(store, of_value(copies), picked={}, dims={}, at={})
    head = tensor_bar(store, maps)["maps"][0]
    assert [item["inferred"] for item in head["states"]] == ["replicated", ""]
    assert "Inferred: all ranks along axis0 hold the same." in head["note"]
