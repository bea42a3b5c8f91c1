from __future__ import annotations

import numpy as np
import pytest
from dtir_app.frames.outline import CHILDREN, FIRST, ROOT, outline_rows, reveal, tree, unfolded, widened
from dtir_app.gallery import examples
from dtir_app.selection import NOTHING, of_task

from dtir.ir.tasks import LocalCompute
from dtir.schema.frozen import FrozenDict
from tests.app.build import store_of, store_of_example
from tests.helpers.layered import layered
from tests.helpers.programs import call, mesh_of, program, region, task

NAMES = [item.name for item in examples()]


@pytest.mark.parametrize("name", NAMES)
def test_any_task_can_be_revealed(name: str) -> None:
    store = store_of_example(name)
    for number in range(0, len(store.tasks), max(1, len(store.tasks) // 40)):
        if store.tasks.executions[number] == 0:
            continue  # nothing enters its region
        rows = outline_rows(store, unfolded({}, reveal(store, number)), of_task(number))
        assert [row["label"] for row in rows if row["selected"]] == [store.tasks.name[number]]


@pytest.mark.parametrize("name", NAMES)
def test_the_sums_of_the_root_are_those_of_the_list(name: str) -> None:
    store = store_of_example(name)
    root, nodes = tree(store, 0)
    assert root.tasks == store.scopes[0].task_count
    members = [item for node in nodes for item in node.members if isinstance(item, int)]
    assert sorted(members) == list(range(store.scopes[0].task_count))


def test_closed_rows_hide_what_is_in_them() -> None:
    store = store_of_example("transformer_train")
    assert len(outline_rows(store, {}, NOTHING)) == 1
    rows = outline_rows(store, {ROOT: (0, 10)}, NOTHING)
    assert rows[0]["expanded"] is True
    assert rows[-1]["what"] == "more"
    assert len(rows) == 12


def named(paths: list[str]) -> object:
    mesh = mesh_of(tp=2)
    tasks = tuple(
        task(f"t{number}", mesh, LocalCompute(), attributes=FrozenDict({"op_name": path}))
        for number, path in enumerate(paths)
    )
    return store_of(program(mesh, tasks=tasks, values=(), inputs=(), outputs=()))


def labels(store: object, opened: dict[str, tuple[int, int]]) -> list[str]:
    return [str(row["label"]) for row in outline_rows(store, opened, NOTHING)]


def test_what_all_names_begin_with_is_left_out_and_lone_scopes_are_joined() -> None:
    store = named(["jit(f)/layer0/attn/dot", "jit(f)/layer0/mlp/dot", "jit(f)/layer1/attn/dot"])
    opened = {ROOT: FIRST, f"{ROOT}>g1": FIRST}
    assert labels(store, opened) == ["demo", "layer0", "attn", "mlp", "layer1/attn"]


def test_scopes_stand_before_single_tasks() -> None:
    store = named(["a", "f/x/op", "b", "f/y/op"])
    assert labels(store, {ROOT: FIRST}) == ["demo", "f", "t0", "t2"]


def test_filters_leave_out_with_a_count() -> None:
    store = store_of_example("faults")
    rows = outline_rows(store, {ROOT: FIRST}, NOTHING, frozenset({4, 7}))
    assert [row["label"] for row in rows[1:]] == ["sum_tp", "gather_act", "6 entries hidden by the filters"]


def test_a_region_entered_twice_has_two_rows() -> None:
    mesh = mesh_of(tp=2)
    body = region("body", mesh, (task("inner", mesh, LocalCompute()),))
    store = store_of(
        program(
            mesh,
            tasks=(call("a", mesh, "body"), call("b", mesh, "body")),
            values=(),
            inputs=(),
            outputs=(),
            regions=(body,),
        )
    )
    opened = {ROOT: FIRST, f"{ROOT}>t0": FIRST, f"{ROOT}>t1": FIRST, f"{ROOT}>t1>s1": FIRST}
    rows = outline_rows(store, opened, NOTHING)
    assert [row["label"] for row in rows] == ["demo", "a", "body", "b", "body", "inner"]
    assert len({row["key"] for row in rows}) == len(rows)


def test_regions_that_enter_each_other_end() -> None:
    mesh = mesh_of(tp=2)
    a = region("a", mesh, (call("again", mesh, "a"),))
    store = store_of(program(mesh, tasks=(call("in", mesh, "a"),), values=(), inputs=(), outputs=(), regions=(a,)))
    opened = {ROOT: FIRST}
    for _ in range(100):
        rows = outline_rows(store, opened, NOTHING)
        opened |= {str(row["key"]): FIRST for row in rows if row["expanded"] is False}
    assert len(rows) < 100
    assert np.isnan(store.tasks.executions[1])


def test_a_long_row_shows_the_surroundings_of_what_is_revealed() -> None:
    mesh = mesh_of(tp=2)
    tasks = tuple(task(f"t{number}", mesh, LocalCompute()) for number in range(5000))
    store = store_of(program(mesh, tasks=tasks, values=(), inputs=(), outputs=()))
    opened = unfolded({ROOT: FIRST}, reveal(store, 3000))
    rows = outline_rows(store, opened, of_task(3000))
    assert len(rows) == CHILDREN + 3
    assert (rows[1]["label"], rows[-1]["label"]) == ("… 2,900 before: show", "… 1,900 more: show")
    assert [row["label"] for row in rows if row["selected"]] == ["t3000"]
    assert unfolded(opened, reveal(store, 3001)) == opened
    more = outline_rows(store, widened(opened, ROOT, str(rows[1]["way"])), NOTHING)
    assert more[1]["label"] == "… 1,900 before: show"
    assert outline_rows(store, widened(opened, ROOT, "after"), NOTHING)[-1]["label"] == "… 900 more: show"
    assert widened(opened, "no such row", "after") == opened


def test_names_of_several_parts_make_groups_that_say_how_often_they_repeat() -> None:
    store = store_of(layered(12, 2))
    root = outline_rows(store, {ROOT: FIRST}, NOTHING)
    assert [row["label"] for row in root[1:]] == ["mb", "embed", "loss"]
    assert root[1]["note"] == "240 · 96 comm · ×2"
    task_number = store.tasks.name.index("mb.1.layers.7.up")
    rows = outline_rows(store, unfolded({}, reveal(store, task_number)), of_task(task_number))
    selected = next(row for row in rows if row["selected"])
    assert (selected["label"], selected["depth"]) == ("mb.1.layers.7.up", 4)
    assert any(str(row["note"]).endswith("×12") for row in rows)
