from __future__ import annotations

import math

import numpy as np
import pytest
from dtir_app.columns import open_imported
from dtir_app.gallery import examples
from dtir_app.kinds import KINDS, Family

from dtir.analysis.summary import summarize
from dtir.importers import load_bytes
from dtir.ir.tasks import LocalCompute
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from dtir.schema.frozen import FrozenDict
from tests.app.build import opened_example, store_of, store_of_example
from tests.helpers.programs import all_reduce, call, loop, mesh_of, node_id, program, region, task, value_id

NAMES = [item.name for item in examples()]


@pytest.mark.parametrize("name", NAMES)
def test_counts_agree_with_the_summary(name: str) -> None:
    store = store_of_example(name)
    facts = summarize(store.program)
    assert len(store.tasks) == facts.task_total
    assert len(store.values) == facts.value_total
    assert len(store.scopes) == facts.region_total + 1
    collectives = [row for row in range(len(store.tasks)) if store.tasks.family[row] == Family.COLLECTIVE]
    assert [KINDS[store.tasks.kind[row]].name for row in collectives] == [row.kind for row in facts.collectives]
    runs = [None if math.isnan(store.tasks.executions[row]) else store.tasks.executions[row] for row in collectives]
    assert runs == [row.executions for row in facts.collectives]


@pytest.mark.parametrize("name", NAMES)
def test_edges_stay_in_their_scope_and_follow_the_values(name: str) -> None:
    store = store_of_example(name)
    edges = store.edges
    assert edges.scope_start[-1] == len(edges.source)
    for scope in store.scopes:
        part = edges.of_scope(scope.index)
        for ends in (edges.source[part], edges.destination[part]):
            assert ((ends >= scope.first_task) & (ends < scope.last_task)).all()
    for source, destination, only in zip(edges.source, edges.destination, edges.order_only, strict=True):
        made = set(store.task_records[source].outputs)
        carries = bool(made & set(store.task_records[destination].inputs))
        assert carries == (not only) or store.task_records[source].id in store.task_records[destination].completes


@pytest.mark.parametrize("name", NAMES)
def test_readers_are_the_tasks_that_name_a_value(name: str) -> None:
    store = store_of_example(name)
    for value in range(0, len(store.values), 3):
        scope = store.scopes[store.values.scope[value]]
        wanted = store.value_records[value].id
        span = range(scope.first_task, scope.last_task)
        assert store.values.readers_of(value) == [row for row in span if wanted in store.task_records[row].inputs]


@pytest.mark.parametrize("name", NAMES)
def test_scopes_cover_all_tasks_and_values_once(name: str) -> None:
    store = store_of_example(name)
    assert [scope.first_task for scope in store.scopes[1:]] == [scope.last_task for scope in store.scopes[:-1]]
    assert store.scopes[-1].last_task == len(store.tasks)
    assert store.scopes[-1].last_value == len(store.values)
    for scope in store.scopes:
        assert (store.tasks.scope[scope.first_task : scope.last_task] == scope.index).all()


def test_columns_cannot_be_written_to() -> None:
    store = store_of(program())
    for column in (store.tasks.kind, store.tasks.message_bytes, store.edges.source, store.values.local_bytes):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_loop_weighs_what_runs_in_it() -> None:
    mesh = mesh_of(tp=2)
    body = region("body", mesh, (task("inner", mesh, LocalCompute()), call("deeper", mesh, "leaf")))
    leaf = region("leaf", mesh, (task("deep", mesh, LocalCompute()),))
    lone = region("lone", mesh, (task("never", mesh, LocalCompute()),))
    store = store_of(
        program(
            mesh, tasks=(loop("while", mesh, "body", 5),), values=(), inputs=(), outputs=(), regions=(body, leaf, lone)
        )
    )
    assert [scope.executions for scope in store.scopes] == [1, 5, 5, 0]
    assert store.scopes[1].callers == (0,)
    assert store.tasks.entered == {0: (1,), 2: (2,)}
    assert store.tasks.executions.tolist() == [1, 5, 5, 5, 0]


def test_a_loop_whose_trips_the_data_decide_has_no_number() -> None:
    mesh = mesh_of(tp=2)
    body = region("body", mesh, (task("inner", mesh, LocalCompute()),))
    store = store_of(
        program(mesh, tasks=(loop("while", mesh, "body", None),), values=(), inputs=(), outputs=(), regions=(body,))
    )
    assert store.scopes[1].executions is None
    assert np.isnan(store.tasks.executions[1])


def test_findings_know_their_tasks_and_values() -> None:
    mesh = mesh_of(dp=2, tp=4)
    body = region("body", mesh, (task("inner", mesh, LocalCompute()),))
    made = program(mesh, regions=(body,))
    store = store_of(
        made,
        Diagnostic("a.path", "m", ("tasks", "1", "body")),
        Diagnostic("a.value", "m", ("values", "2"), Severity.WARNING, hint="mend"),
        Diagnostic("a.region", "m", ("regions", "0", "tasks", "0"), Severity.INFO),
        Diagnostic("an.id", "m", subject=(str(node_id("mul.0")), str(value_id("h")), "tp")),
        Diagnostic("a.pair", "m", ("tasks", "0"), related=(Related("the other", ("tasks", "1")),)),
        Diagnostic("no.where", "m", ("tasks", "99"), subject=("node:" + "0" * 32,)),
    )
    assert [(item.tasks, item.values) for item in store.findings] == [
        ((1,), ()), ((), (2,)), ((2,), ()), ((0,), (1,)), ((0, 1), ()), ((), ()),
    ]  # fmt: skip
    assert store.counts() == {"error": 4, "warning": 1, "info": 1}
    assert store.tasks.worst.tolist() == [0, 0, 2]
    assert store.values.worst.tolist() == [3, 0, 1]


def test_broken_references_lead_nowhere() -> None:
    mesh = mesh_of(tp=2)
    lost = task("lost", mesh, LocalCompute(), ("nowhere",), ("gone",), dependencies=(node_id("none"),))
    store = store_of(program(mesh, tasks=(lost,), outputs=(value_id("gone"),)))
    assert len(store.edges.source) == 0
    assert store.value_at(0, value_id("nowhere").value) == -1


def test_a_size_that_is_not_known_yet_is_no_number() -> None:
    from dtir.ir.expr import BindingAxis, Symbol

    mesh = mesh_of(dp=2, tp=4)
    size = Symbol("b", BindingAxis.WORKLOAD) * 32
    made = program(mesh, spec=all_reduce(mesh, axes=("tp",), message_bytes=size))
    assert np.isnan(store_of(made).tasks.message_bytes[1])
    bound = program(mesh, spec=all_reduce(mesh, axes=("tp",), message_bytes=size), bindings=FrozenDict({"b": 4}))
    assert store_of(bound).tasks.message_bytes[1] == 128


def test_the_mesh_in_one_line() -> None:
    assert store_of(program(mesh_of(dp=2, tp=4))).mesh_text == "dp2 × tp4"
    assert store_of(program(mesh_of(axis0=2, axis1=4))).mesh_text == "axis0=2 × axis1=4"


def test_an_input_that_holds_no_program_is_only_findings() -> None:
    opened = open_imported(load_bytes(b"{}", name="x.json"))
    assert opened.store is None
    assert opened.findings
    assert opened.findings[0].severity == "error"


def test_the_verifier_and_the_reader_are_heard_once_each() -> None:
    opened = opened_example("faults")
    assert opened.store is not None
    assert [item.code for item in opened.findings] == [
        "partial.add_replicated", "partial.add_replicated", "collective.gather_dim",
    ]  # fmt: skip
    names = [opened.store.tasks.name[item.tasks[0]] for item in opened.findings]
    assert names == ["add_bias", "update", "gather_act"]


def test_a_mesh_of_two_thousand_million_ranks_is_read() -> None:
    mesh = mesh_of(dp=2_000_000, tp=1000)
    store = store_of(program(mesh))
    assert store.tasks.rank_count[0] == 2_000_000_000
    assert store.axis_names(int(store.tasks.axes[1])) == ("tp",)
