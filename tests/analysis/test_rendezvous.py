"""Who gets through: the array runs against a simulation that knows nothing of graphs, on random programs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis import rendezvous
from dtir.analysis.membership import TooLarge
from dtir.analysis.projection import in_one_order, project
from dtir.analysis.rendezvous import Waits, run
from dtir.ir import (
    AllReduce,
    Collective,
    Control,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    IssueList,
    Lineage,
    LogicalMesh,
    MeshAxis,
    NodeId,
    OperationName,
    PeerTransfer,
    PointToPoint,
    ReductionKind,
    ShardingSpec,
    TensorType,
    ValueId,
    ValueRole,
)

ROOT = Lineage.root("test")
Op = tuple[str, tuple[int, ...]]


def make(ranks: int, ops: Sequence[Op], issue: Sequence[Sequence[Sequence[int]]]) -> DistributedTaskIR:
    """A program of collectives ``("c", members)`` and transfers ``("t", (source, destination))`` with its issue lists."""
    name = OperationName("core", "x")
    tasks = []
    for number, (kind, members) in enumerate(ops):
        body = (
            Collective(AllReduce(members, 4, ReductionKind.SUM))
            if kind == "c"
            else PointToPoint(PeerTransfer(members[0], members[1], 4))
        )
        tasks.append(DistributedTask(NodeId.derive(number), body, name, members, (), (), (), ROOT))
    lists = tuple(
        IssueList(rank, tuple(tuple(tasks[number].id for number in step) for step in steps))
        for rank, steps in enumerate(issue)
    )
    value = DistributedValue(
        ValueId.derive("v"),
        TensorType((1,), "f32"),
        ValueRole.STATE,
        ShardingSpec(((),), ("a",)),
        tuple(range(ranks)),
        ROOT,
    )
    mesh = LogicalMesh("m", (MeshAxis("a", ranks),))
    return DistributedTaskIR("t", "a" * 40, mesh, (value,), tuple(tasks), (), (), issue=lists)


def simulate(ops: Sequence[Op], issue: Sequence[Sequence[Sequence[int]]], *, buffered: bool, seed: int) -> set[int]:
    """Ranks that do not get through, stepping ranks in a random order until nothing moves."""
    at = [0] * len(issue)
    arrived: dict[int, set[int]] = {number: set() for number in range(len(ops))}
    dice = random.Random(seed)

    def done(number: int) -> bool:
        return arrived[number] >= set(ops[number][1])

    def leaves(rank: int, number: int) -> bool:
        kind, members = ops[number]
        return done(number) or (buffered and kind == "t" and members[0] == rank)

    moved = True
    while moved:
        moved = False
        order = list(range(len(issue)))
        dice.shuffle(order)
        for rank in order:
            if at[rank] == len(issue[rank]):
                continue
            step = [number for number in issue[rank][at[rank]] if rank in ops[number][1]]
            for number in step:
                moved = moved or rank not in arrived[number]
                arrived[number].add(rank)
            if all(leaves(rank, number) for number in step):
                at[rank] += 1
                moved = True
    return {rank for rank in range(len(issue)) if at[rank] < len(issue[rank])}


@st.composite
def programs(draw: st.DrawFn) -> tuple[int, list[Op], list[list[list[int]]]]:
    ranks = draw(st.integers(2, 4))
    members = st.lists(st.integers(0, ranks - 1), min_size=2, max_size=ranks, unique=True)
    op = st.one_of(
        members.map(lambda ranks: ("c", tuple(sorted(ranks)))),
        st.permutations(range(ranks)).map(lambda ranks: ("t", tuple(ranks[:2]))),
    )
    ops = draw(st.lists(op, min_size=1, max_size=6))
    issue: list[list[list[int]]] = []
    for rank in range(ranks):
        own = draw(st.permutations([number for number, (_, ranks_) in enumerate(ops) if rank in ranks_]))
        steps: list[list[int]] = []
        for number in own:
            if steps and draw(st.integers(0, 3)) == 0:
                steps[-1].append(number)
            else:
                steps.append([number])
        issue.append(steps)
    return ranks, ops, issue


@given(programs(), st.booleans(), st.integers(0, 3))
def test_runs_agree_with_a_simulation(
    drawn: tuple[int, list[Op], list[list[list[int]]]], buffered: bool, seed: int
) -> None:
    ranks, ops, issue = drawn
    projection = project(make(ranks, ops, issue))
    outcome = run(projection, buffered=buffered)
    stuck = {int(projection.step_rank[step]) for step in outcome.stuck}
    assert stuck == simulate(ops, issue, buffered=buffered, seed=seed)


@given(programs())
def test_stuck_ranks_wait_in_a_circle(drawn: tuple[int, list[Op], list[list[list[int]]]]) -> None:
    ranks, ops, issue = drawn
    projection = project(make(ranks, ops, issue))
    outcome = run(projection)
    circle = Waits(projection, outcome).circle(kinds="later")
    if outcome.free:
        assert circle is None
        return
    assert circle is not None
    for link, following in zip(circle, (*circle[1:], circle[0]), strict=True):
        assert link.waits_for == following.rank
        assert link.rank in ops[int(projection.members.op_task[link.op])][1]


@given(programs())
def test_the_shortcut_never_says_free_wrongly(drawn: tuple[int, list[Op], list[list[list[int]]]]) -> None:
    ranks, ops, issue = drawn
    projection = project(make(ranks, ops, issue))
    if in_one_order(projection):
        assert run(projection).free


@given(programs())
def test_narrow_and_whole_rounds_agree(drawn: tuple[int, list[Op], list[list[list[int]]]]) -> None:
    ranks, ops, issue = drawn
    projection = project(make(ranks, ops, issue))
    narrow = run(projection)
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(rendezvous, "NARROW", 0)
        whole = run(projection)
    assert np.array_equal(narrow.stuck, whole.stuck)
    assert np.array_equal(narrow.done, whole.done)


def test_a_run_goes_back_to_whole_rounds_when_it_widens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "NARROW", 3)
    monkeypatch.setattr(rendezvous, "WIDE", 4)
    count = 12
    ops: list[Op] = [
        ("t", (0, 1)),
        ("t", (1, 2)),
        ("c", tuple(range(count))),
        *(("t", (rank, rank + 1)) for rank in range(0, count, 2)),
    ]
    issue = [[[number] for number, (_, members) in enumerate(ops) if rank in members] for rank in range(count)]
    assert run(project(make(count, ops, issue))).free


def test_a_member_that_never_comes_is_missing_and_nothing_else() -> None:
    ops: list[Op] = [("c", (0, 1, 2)), ("c", (0, 1, 2))]
    projection = project(make(3, ops, [[[0], [1]], [[0], [1]], [[0]]]))
    members = projection.members
    assert [(int(members.task[place]), int(members.rank[place])) for place in projection.missing] == [(1, 2)]


def test_a_task_that_a_rank_issues_twice_counts_once() -> None:
    ops: list[Op] = [("c", (0, 1)), ("c", (0, 1))]
    projection = project(make(2, ops, [[[0], [0], [1]], [[0], [1]]]))
    assert len(projection.post_op) == 4
    assert run(projection).free


def test_a_rank_without_a_list_issues_in_task_order() -> None:
    ops: list[Op] = [("c", (0, 1)), ("c", (0, 1))]
    program = make(2, ops, [[[1], [0]]])
    assert not run(project(program)).free


def test_an_asynchronous_task_is_left_at_once_and_waited_for_later() -> None:
    program = make(2, [("c", (0, 1)), ("c", (0, 1))], [])
    wait = DistributedTask(
        NodeId.derive("w"),
        Control(),
        OperationName("core", "wait"),
        (0, 1),
        (),
        (),
        (),
        ROOT,
        completes=(program.tasks[0].id,),
    )
    first, second = (task.id for task in program.tasks)
    issue = (
        IssueList(0, ((first,), (second,), (wait.id,))),
        IssueList(1, ((second,), (first,), (wait.id,))),
    )
    crossed = DistributedTaskIR(
        "t", "a" * 40, program.mesh, program.values, (*program.tasks, wait), (), (), issue=issue
    )
    assert run(project(crossed)).free


def test_a_program_of_too_many_participants_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtir.analysis.membership.MAX_SLOTS", 5)
    with pytest.raises(TooLarge) as error:
        project(make(3, [("c", (0, 1, 2)), ("c", (0, 1, 2))], []))
    assert error.value.slots == 6


def test_slots_are_matched_by_sorting_where_the_table_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    ops: list[Op] = [("c", (0, 1, 2)), ("t", (0, 2)), ("c", (1, 2))]
    issue = [[[0], [1]], [[0], [2]], [[1], [0], [2]]]
    dense = run(project(make(3, ops, issue)))
    monkeypatch.setattr("dtir.analysis.membership.MAX_TABLE", 0)
    sparse = run(project(make(3, ops, issue)))
    assert np.array_equal(dense.stuck, sparse.stuck)
    assert len(dense.stuck)
