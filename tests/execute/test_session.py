"""Steps on ranks: control flow that follows the data, values that are freed, what fails and where."""

from __future__ import annotations

import numpy as np
import pytest

from dtir.execute import ExecutionError, Slab
from dtir.execute.values import rows
from tests.helpers.running import hlo_program, plan_of, run_hlo, run_slabs, session_of

LOOP = """HloModule m, num_partitions=4
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
body { p = (s32[], f32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[] get-tuple-element(p), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 %s
 ROOT t = (s32[], f32[]) tuple(j, y) }
cond { p = (s32[], f32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(%s)
 %s
 ROOT c = pred[] compare(i, m), direction=LT }
ENTRY e { a = f32[] parameter(0)
 z = s32[] constant(0)
 t = (s32[], f32[]) tuple(z, a)
 w = (s32[], f32[]) while(t), condition=cond, body=body
 ROOT r = f32[] get-tuple-element(w), index=1 }"""


def loop(body: str, trips: int = 3, bound: str = "m = s32[] add(n, n)") -> str:
    return LOOP % (body, trips, bound)


BY_RANK = """q = u32[] partition-id()
 s = s32[] convert(q)
 m = s32[] add(n, s)"""


def scalars(*values: float) -> list[np.ndarray]:
    return [np.asarray(value, np.float32) for value in values]


def test_a_loop_with_a_collective() -> None:
    text = loop(
        "y = f32[] all-reduce(x), replica_groups={{0,1},{2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add"
    )
    found = run_hlo(text, scalars(1, 2, 3, 4))
    # Six rounds: after the first, both hold the sum, which doubles every time.
    assert [float(out[0]) for out in found] == [96, 96, 224, 224]


def test_ranks_may_leave_a_loop_at_different_times() -> None:
    found = run_hlo(loop("y = f32[] multiply(x, x)", 0, BY_RANK), scalars(3, 3, 3, 3))
    assert [float(out[0]) for out in found] == [3, 9, 81, 6561]


def test_whoever_left_the_loop_is_missed() -> None:
    text = loop(
        "y = f32[] all-reduce(x), replica_groups={}, channel_id=1, use_global_device_ids=true, to_apply=add", 1, BY_RANK
    )
    with pytest.raises(ExecutionError, match=r"ranks 1, 2, 3 wait for ranks 0, which never arrive") as caught:
        run_hlo(text, scalars(1, 1, 1, 1))
    assert caught.value.code == "run.deadlock"
    assert caught.value.step.name == "y"


def test_groups_of_those_who_stay_go_on() -> None:
    alone = "replica_groups={{0},{1},{2},{3}}, channel_id=1, use_global_device_ids=true, to_apply=add"
    text = loop(f"y = f32[] all-reduce(x), {alone}", 1, BY_RANK)
    assert [float(out[0]) for out in run_hlo(text, scalars(1, 2, 3, 4))] == [1, 2, 3, 4]


CONDITIONAL = """HloModule m, num_partitions=4
f { p = f32[2] parameter(0)
 ROOT r = f32[2] negate(p) }
g { p = f32[2] parameter(0)
 ROOT r = f32[2] %s }
ENTRY e { i = s32[] parameter(0)
 a = f32[2] parameter(1)
 ROOT w = f32[2] conditional(i, a, a), branch_computations={f,g} }"""


def test_ranks_take_their_own_branches() -> None:
    chosen = [np.asarray(value, np.int32) for value in (0, 1, 7, -1)]
    arrays = [np.full(2, rank + 1, np.float32) for rank in range(4)]
    found = run_hlo(CONDITIONAL % "multiply(p, p)", chosen, arrays)
    # Outside of the range the last branch is meant.
    assert [out[0].tolist() for out in found] == [[-1, -1], [4, 4], [9, 9], [16, 16]]


def test_a_permute_in_one_branch_misses_its_source() -> None:
    permute = "collective-permute(p), source_target_pairs={{0,1},{1,2}}, channel_id=1"
    chosen = [np.asarray(value, np.int32) for value in (0, 1, 1, 0)]
    with pytest.raises(ExecutionError, match="rank 1 waits for rank 0, which never arrives") as caught:
        run_hlo(CONDITIONAL % permute, chosen, [np.ones(2, np.float32)] * 4)
    assert caught.value.code == "run.deadlock"


def test_no_data_dependent_count_is_unrolled_beforehand() -> None:
    """A loop that counts to 1,000 runs 1,000 times and holds one state."""
    text = loop("y = f32[] add(x, x)", 500).replace("f32[] add(x, x)", "f32[] abs(x)")
    found = run_hlo(text, scalars(-1, -2, -3, -4))
    assert [float(out[0]) for out in found] == [1, 2, 3, 4]


def test_equal_values_are_held_once() -> None:
    text = """HloModule m, num_partitions=8
ENTRY e { c = f32[] constant(2)
 b = f32[4,4] broadcast(c), dimensions={}
 ROOT r = f32[4,4] multiply(b, b) }"""
    (held,) = run_slabs(plan_of(hlo_program(text)), [])
    assert isinstance(held, Slab)
    assert held.array.strides[0] == 0
    assert held.array.shape == (8, 4, 4)


def test_values_are_freed_after_their_last_use() -> None:
    text = """HloModule m
ENTRY e { a = f32[2] parameter(0)
 b = f32[2] negate(a)
 c = f32[2] abs(b)
 ROOT d = f32[2] add(c, c) }"""
    plan = plan_of(hlo_program(text))
    session = session_of(plan)
    session.load("a", 0, np.ones(2, np.float32))
    for step in plan.main.steps:
        session.execute(step)
    assert session.read("d", 0).tolist() == [2, 2]
    for gone in ("a", "b", "c"):
        with pytest.raises(KeyError):
            session.read(gone, 0)


def test_a_custom_reduction_is_folded_in_group_order() -> None:
    """One that is not commutative: the second operand wins over a zero first, else the first stays."""
    text = """HloModule m, num_partitions=3
pick { x = f32[] parameter(0)
 y = f32[] parameter(1)
 z = f32[] constant(0)
 e = pred[] compare(x, z), direction=EQ
 ROOT r = f32[] select(e, y, x) }
ENTRY e { a = f32[3] parameter(0)
 ROOT s = f32[3] all-reduce(a), replica_groups={{2,0,1}}, channel_id=1, use_global_device_ids=true, to_apply=pick }"""
    arrays = [np.asarray(row, np.float32) for row in ([1, 2, 0], [3, 4, 5], [0, 7, 0])]
    found = run_hlo(text, arrays)
    assert [out[0].tolist() for out in found] == [[1, 7, 5]] * 3


def test_the_tuple_form_of_all_to_all() -> None:
    text = """HloModule m, num_partitions=4
ENTRY e { a = f32[1] parameter(0)
 b = f32[1] parameter(1)
 ROOT t = (f32[1], f32[1]) all-to-all(a, b), replica_groups={{0,2},{3,1}}, channel_id=1 }"""
    first = [np.asarray([rank], np.float32) for rank in range(4)]
    second = [np.asarray([10 + rank], np.float32) for rank in range(4)]
    found = run_hlo(text, first, second)
    # Operand j goes to member j; result i comes from member i.
    assert [[float(out[0]) for out in rank] for rank in found] == [[0, 2], [13, 11], [10, 12], [3, 1]]


def test_ranks_of_no_group_get_zeros() -> None:
    text = """HloModule m, num_partitions=3
ENTRY e { a = f32[2] parameter(0)
 ROOT b = f32[2] collective-broadcast(a), replica_groups={{1,0}}, channel_id=1 }"""
    found = run_hlo(text, [np.full(2, rank + 1, np.float32) for rank in range(3)])
    assert [out[0].tolist() for out in found] == [[2, 2], [2, 2], [0, 0]]


def test_sends_and_receives_between_devices() -> None:
    text = """HloModule m, num_partitions=2
ENTRY e { a = f32[2] parameter(0)
 t = token[] after-all()
 r = (f32[2], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}
 s = (f32[2], u32[], token[]) send(a, t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}
 rd = (f32[2], token[]) recv-done(r), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}
 sd = token[] send-done(s), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}
 ROOT o = f32[2] get-tuple-element(rd), index=0 }"""
    found = run_hlo(text, [np.asarray([1, 2], np.float32), np.asarray([3, 4], np.float32)])
    assert found[1][0].tolist() == [1, 2]


def test_only_communication() -> None:
    text = """HloModule m, num_partitions=2
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
ENTRY e { a = f32[3] parameter(0)
 k = f32[3] custom-call(a), custom_call_target="nobody_knows"
 ROOT s = f32[3] all-reduce(k), replica_groups={}, channel_id=1, use_global_device_ids=true, to_apply=add }"""
    plan = plan_of(hlo_program(text))
    zeros = Slab((0, 1), np.zeros((2, 3), np.float32))
    first = run_slabs(plan, [zeros], skip_local=True)
    again = run_slabs(plan, [zeros], skip_local=True)
    # What the unknown task gives is filled by a rule: rank by rank different, every time the same.
    assert np.array_equal(rows(first[0])[0], [1, 3, 5])
    assert np.array_equal(rows(first[0])[1], rows(again[0])[0])


def test_the_failing_step_is_named() -> None:
    text = """HloModule m
ENTRY e { a = f32[4] parameter(0)
 i = s32[1] parameter(1)
 ROOT g = f32[2] gather(a, i), offset_dims={0}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={3} }"""
    with pytest.raises(ExecutionError) as caught:
        run_hlo(text, [np.ones(4, np.float32)], [np.zeros(1, np.int32)])
    assert caught.value.step.name == "g"
    assert caught.value.code == "run.failed"
