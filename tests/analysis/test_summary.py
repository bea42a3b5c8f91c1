from __future__ import annotations

from dataclasses import replace

import pytest

from dtir.analysis.summary import collective_rows, source_of, summarize
from dtir.ir import BindingAxis, Collective, DistributedTask, DistributedTaskIR, Symbol
from dtir.schema import FrozenDict
from tests.helpers.programs import all_reduce, call, loop, mesh_of, node_id, permute, program, region, task

MESH = mesh_of(dp=2, tp=4)


def test_counts_and_rows_of_a_plain_program() -> None:
    summary = summarize(program())
    assert (summary.task_total, summary.value_total, summary.region_total) == (2, 3, 0)
    assert summary.tasks_by_kind == {"local-compute": 1, "collective": 1}
    assert (summary.input_total, summary.output_total) == (1, 1)
    (row,) = summary.collectives
    assert row.id == str(node_id("sum.1"))
    assert (row.kind, row.reduction, row.dtype, row.message_bytes) == ("all_reduce", "sum", "f32", 128)
    assert (row.group_count, row.group_size, row.members) == (2, 4, 8)
    assert row.groups is not None
    assert [list(group) for group in row.groups] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (row.axes, row.source_name, row.source, row.executions, row.region) == (
        ("tp",),
        "sum.1",
        "jit(f)/psum",
        1,
        None,
    )


def nested() -> DistributedTaskIR:
    def sum_in(name: str) -> DistributedTask:
        return task(name, MESH, Collective(all_reduce(MESH)))

    return program(
        tasks=(loop("w", MESH, "body", 5), loop("u", MESH, "unknown", None), call("c", MESH, "body")),
        regions=(
            region("body", MESH, (sum_in("in.body"),)),
            region("unknown", MESH, (sum_in("in.unknown"),)),
            region("dead", MESH, (sum_in("in.dead"),)),
        ),
    )


def test_collectives_in_regions_are_counted_once_and_weighted() -> None:
    summary = summarize(nested())
    assert summary.task_total == 6
    assert [(row.source_name, row.region, row.executions) for row in summary.collectives] == [
        ("in.body", "body", 6),
        ("in.unknown", "unknown", None),
        ("in.dead", "dead", 0),
    ]


def test_a_permute_shows_its_pairs() -> None:
    (row,) = collective_rows(program(spec=permute(MESH, ((0, 1), (1, 0)))))
    assert row.groups == ((0, 1), (1, 0))
    assert (row.kind, row.group_size, row.axes, row.reduction) == ("collective_permute", 2, (), None)


def test_an_unknown_axis_leaves_the_groups_open() -> None:
    (row,) = collective_rows(program(spec=all_reduce(MESH, axes=("ep",))))
    assert (row.groups, row.group_count, row.group_size, row.members) == (None, None, None, 0)


def test_a_symbolic_message_is_kept() -> None:
    size = Symbol("b", BindingAxis.WORKLOAD) * 4
    (row,) = collective_rows(program(spec=all_reduce(MESH, message_bytes=size)))
    assert row.message_bytes == size
    assert row.message_text == "workload.b * 4"


def test_a_collective_without_values_has_no_dtype() -> None:
    made = program()
    bare = replace(made.tasks[1], inputs=(), outputs=(), name="")
    (row,) = collective_rows(replace(made, tasks=(made.tasks[0], bare)))
    assert (row.dtype, row.source_name) == (None, None)


@pytest.mark.parametrize(
    ("attributes", "source"),
    [
        ({}, None),
        ({"op_name": "f/x"}, "f/x"),
        ({"op_name": "f/x", "source": "a.py:3"}, "f/x (a.py:3)"),
        ({"source": "a.py:3"}, "a.py:3"),
        ({"op_name": "", "source": 3}, None),
    ],
)
def test_where_a_task_comes_from(attributes: dict[str, object], source: str | None) -> None:
    assert source_of(replace(program().tasks[0], attributes=FrozenDict(attributes))) == source
