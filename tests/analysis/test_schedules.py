"""Orders of ranks, pipeline bounds and routes."""

from __future__ import annotations

import pytest

from dtir.analysis.routing import counts_of_route, read_routing, transposed
from dtir.analysis.schedules import most_inflight, rank_orders, slots_of, warmup
from tests.helpers.authoring import program, sketch

TEXT = """
mesh [pp, 2]
{issue}
values
  x [2]
tasks
  a: kind: control, in: [], out: [], ranks: [0], pp: {{stage: 0, mb: 0, phase: F}}
  b: kind: control, in: [], out: [], ranks: [1], pp: {{stage: 1, mb: 0, phase: forward}}
  c: kind: control, in: [], out: [], ranks: [0, 1], pp: {{stage: 1, mb: 0, phase: B}}
  d: kind: control, in: [], out: [], ranks: [0], pp: {{stage: 0, mb: 0, phase: other}}
in x
"""


def orders(issue: str = "") -> dict[int, list[int]]:
    found = program(sketch(TEXT.format(issue=issue).replace("\n\n", "\n")))
    return dict(rank_orders(found, [0, 1, 2, 3]))


def test_a_rank_runs_its_tasks_in_list_order_without_an_issue_list() -> None:
    assert orders() == {0: [0, 2, 3], 1: [1, 2]}


def test_an_issue_list_goes_before_list_order() -> None:
    assert orders("issue: {1: [c, b]}") == {1: [2, 1], 0: [0, 2, 3]}


def test_only_forward_and_backward_are_slots() -> None:
    found = slots_of(program(sketch(TEXT.format(issue="").replace("\n\n", "\n"))).tasks)
    assert [(slot.task, slot.forward) for slot in found] == [(0, True), (1, True), (2, False)]


@pytest.mark.parametrize(("stage", "wanted"), list(enumerate((11, 9, 7, 5))))
def test_interleaved_bounds_are_those_of_the_literature(stage: int, wanted: int) -> None:
    # SEMANTICS 3.6: p = 4, v = 2.
    assert most_inflight(stages=4, microbatches=8, stage=stage, chunks=2) == wanted


def test_plain_bounds() -> None:
    assert [most_inflight(stages=4, microbatches=8, stage=stage) for stage in range(4)] == [4, 3, 2, 1]
    assert [warmup(stages=4, microbatches=2, stage=stage) for stage in range(4)] == [2, 2, 1, 0]
    assert warmup(stages=4, microbatches=8, stage=0, chunks=2) == 10


def test_a_route_is_counted_member_by_member() -> None:
    routing = read_routing({"op.route": (0, 1, 1, 0, (0, 1), 3)})
    assert counts_of_route(routing, 2, (3, 3)) == ((3, 0), (3, 1))
    assert counts_of_route(routing, 2, (4, 4)) is None
    assert counts_of_route(read_routing({}), 2, (1, 1)) is None


def test_splits_of_another_form_count_as_not_stated() -> None:
    assert read_routing({"op.send_splits": "x", "op.recv_splits": ((1, True),)}).send is None
    assert read_routing({"op.recv_splits": ((1, True),)}).recv is None
    assert transposed(((1, 2), (3, 4))) == ((1, 3), (2, 4))
    assert transposed(((1, 2), (3,))) is None
