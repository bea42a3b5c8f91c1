"""What the cupy back end issues to devices: order, edges between streams, memory, communicators, graphs.

Devices are played on the host and judge what they are given (`cupy_clocks`); the last tests show that they would object.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from dtir.execute import ExecPlan, ExecutionError, Request, Session, Slab, make_plan, run_program
from dtir.execute.accumulate import error_bound
from dtir.execute.backends.cupy_clocks import RaceError
from dtir.execute.backends.cupy_devices import DevicesSession
from dtir.execute.backends.cupy_graph import capture
from dtir.execute.backends.cupy_host import HostRuntime
from dtir.execute.backends.cupy_lane import MOST_PENDING, Lane
from dtir.execute.backends.cupy_mail import HostCommunicator
from dtir.execute.backends.cupy_memory import memory_at
from dtir.execute.backends.cupy_peers import Peers
from dtir.execute.backends.cupy_runtime import DeviceError
from dtir.execute.backends.cupy_session import DeviceSession
from dtir.execute.data import output_leaves
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.kernels import Launch
from dtir.execute.kernels.host import HostKernels
from dtir.execute.steps import Step
from dtir.execute.values import rows
from dtir.ir.reductions import ReductionKind
from dtir.schema.result import Ok
from tests.execute.test_contract import Groups, expected, random_arrays, result_shape, spec_of
from tests.helpers.devices import device_binding, played_backend, played_runtime, played_session
from tests.helpers.running import ValueRole, chain, collective_task, hlo_program, per_rank_value, plan_of, rank_mesh

ADD = """HloModule m, num_partitions=4
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
ENTRY e { a = f32[64] parameter(0)
 b = f32[64] add(a, a)
 s = f32[64] all-reduce(b), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
 other = f32[64] multiply(a, a)
 more = f32[64] multiply(other, other)
 ROOT t = f32[64] add(s, more) }"""


def input_of(plan: ExecPlan, seed: int = 0) -> Slab:
    slot = plan.main.slots[plan.main.inputs[0]]
    assert slot.shape is not None
    arrays = np.random.default_rng(seed).integers(-8, 9, (plan.ranks, *slot.shape))
    return Slab(tuple(range(plan.ranks)), arrays.astype(numpy_dtype(slot.value.type.dtype)))


def run_steps(session: Session, held: Slab) -> list[np.ndarray]:
    session.load_slot(session.plan.main.inputs[0], held)
    for step in session.plan.main.steps:
        session.execute(step)
    session.sync()
    return [np.asarray(row) for row in rows(session.read_slot(output_leaves(session.plan)[0]))]


def collective(kind: str, groups: Groups, dtype: str = "f32", algorithm: str = "native", turns: int = 1) -> ExecPlan:
    """A plan of one collective, or of several of the same one after the other."""
    ranks = sum(len(group) for group in groups)
    mesh = rank_mesh(ranks)
    shape = (2 * len(groups[0]), 3)
    name = "collective-permute" if kind == "permute" else kind.replace("_", "-")
    values = [per_rank_value("v0", mesh, shape, dtype, ValueRole.INPUT)]
    for turn in range(turns):
        shape = result_shape(kind, shape, len(groups[0]))
        values.append(per_rank_value(f"v{turn + 1}", mesh, shape, dtype))
    tasks = [
        collective_task(
            f"{name}.{turn}", spec_of(kind, groups), f"v{turn}", f"v{turn + 1}", [f"{name}.{turn - 1}"] if turn else []
        )
        for turn in range(turns)
    ]
    return make_plan(chain(mesh, values, tasks), algorithm=algorithm).or_raise()


def events(runtime: HostRuntime, *kinds: str) -> list[tuple[str, str, str]]:
    return [(entry.what, entry.stream.split(" of ")[0], entry.detail) for entry in runtime.log if entry.what in kinds]


def test_communication_waits_for_local_work_and_local_work_for_what_it_uses() -> None:
    runtime = played_runtime()
    run_steps(played_session(plan_of(hlo_program(ADD)), runtime), input_of(plan_of(hlo_program(ADD))))
    order = [
        f"{what} {detail.split('<')[0]}" if what in ("launch", "work") else f"{what} {stream}"
        for what, stream, detail in events(runtime, "launch", "record", "wait", "work")
        if detail.split("<")[0] not in ("array", "empty", "get")
    ]
    assert order == [
        "work add",  # b
        "record stream 1",  # the edge to communication
        "wait stream 2",
        "launch fold_fixed",
        "record stream 2",
        "work multiply",  # other and more go on beside the collective
        "work multiply",
        "wait stream 1",  # the root uses its result
        "work add",
    ]


def test_one_launch_an_all_reduce_and_nothing_for_shared_results() -> None:
    world: Groups = ((0, 1, 2, 3),)
    for kind, launches in (
        ("all_reduce", 1),
        ("broadcast", 0),
        ("all_to_all", 1),
        ("reduce_scatter", 1),
        ("permute", 1),
    ):
        runtime = played_runtime()
        plan = collective(kind, world)
        run_steps(played_session(plan, runtime), input_of(plan))
        assert len(events(runtime, "launch")) == launches, kind


def test_operands_are_kept_until_communication_is_waited_for() -> None:
    """Freed memory of the local stream would be handed to the next local step."""
    runtime = played_runtime()
    lane = Lane(runtime, 0)
    with lane.computing():
        first = runtime.to_device(np.ones((2, 64), np.float32))
    with lane.transferring():
        held = Slab((0, 1), first)
        result = Slab((0, 1), first + first)
    lane.issued([held], [result])
    del held, first
    with lane.computing():
        second = runtime.to_device(np.zeros((2, 64), np.float32))
    lane.need([result])
    del second
    with lane.computing():
        assert runtime.to_device(np.zeros((2, 64), np.float32)) is not None
    lane.close()


def test_no_more_steps_than_said_are_kept() -> None:
    runtime = played_runtime()
    plan = collective("all_reduce", ((0, 1),), turns=3 * MOST_PENDING)
    session = played_session(plan, runtime)
    run_steps(session, input_of(plan))
    waits = [stream for what, stream, _ in events(runtime, "wait") if stream == "stream 1"]
    assert len(waits) >= 2


def test_times_are_those_of_the_device_where_somebody_asks() -> None:
    seen: list[tuple[str, int, int]] = []

    def observe(step: Step, ranks: Sequence[int], start_ns: int, end_ns: int, sent: object) -> None:
        seen.append((step.name, start_ns, end_ns))

    plan = plan_of(hlo_program(ADD))
    run_steps(played_session(plan, played_runtime(), observer=observe), input_of(plan))
    assert [name for name, _, _ in seen] == ["b", "s", "other", "more", "t"]
    assert all(start <= end for _, start, end in seen)
    assert all(one[2] <= other[1] for one, other in pairwise(seen))


# -- several devices ------------------------------------------------------------------------------------------------------


def test_communicators_are_among_distinct_devices_only() -> None:
    for ranks, devices, wanted in ((8, 3, ["(0, 1, 2)"]), (4, 1, []), (2, 2, ["(0, 1)"])):
        runtime = played_runtime(devices)
        plan = collective("all_reduce", (tuple(range(ranks)),))
        run_steps(played_session(plan, runtime), input_of(plan))
        assert [detail for _, _, detail in events(runtime, "communicator")] == wanted
    with pytest.raises(DeviceError, match="distinct devices"):
        played_runtime(2).communicators([1, 1])
    with pytest.raises(DeviceError, match="distinct devices"):
        played_runtime(2).communicators([1])


def test_groups_inside_devices_need_no_communicator() -> None:
    runtime = played_runtime(2)
    plan = collective("all_reduce", ((0, 1), (2, 3)))
    run_steps(played_session(plan, runtime), input_of(plan))
    assert not events(runtime, "communicator", "send", "receive", "all_reduce")


def test_an_all_reduce_is_a_kernel_then_nccl() -> None:
    runtime = played_runtime(2)
    plan = collective("all_reduce", ((0, 1, 2, 3),), "bf16")
    run_steps(played_session(plan, runtime), input_of(plan))
    kinds = [what for what, _, _ in events(runtime, "launch", "all_reduce")]
    assert kinds.count("launch") == 2
    assert kinds.index("launch") < kinds.index("all_reduce")
    assert all("bf16, Sum<bf16>, f32" in detail for _, _, detail in events(runtime, "launch"))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s32"])
@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter"])
def test_native_reductions_over_devices_are_within_the_bound(kind: str, dtype: str) -> None:
    groups: Groups = (tuple(range(7)),)
    arrays = random_arrays(7, (14, 3), dtype, seed=21)
    found = run_steps(
        played_session(collective(kind, groups, dtype), played_runtime(3)), Slab(tuple(range(7)), np.stack(arrays))
    )
    wanted = expected(kind, groups, arrays, dtype, ReductionKind.SUM, spec_of(kind, groups))
    bound = error_bound(np, np.stack(arrays), ReductionKind.SUM)
    bounds = np.split(bound, 7) if kind == "reduce_scatter" else [bound] * 7
    for one, other, most in zip(found, wanted, bounds, strict=True):
        assert one.dtype == other.dtype
        assert (np.abs(one.astype(np.float64) - other.astype(np.float64)) <= most).all()


def test_an_all_to_all_is_sends_and_receives_of_one_group() -> None:
    runtime = played_runtime(2)
    plan = collective("all_to_all", ((0, 1, 2, 3),))
    run_steps(played_session(plan, runtime), input_of(plan))
    assert len(events(runtime, "send")) == len(events(runtime, "receive")) == 2  # one message each way
    (end, _) = runtime.communicators([0, 1])
    with pytest.raises(DeviceError, match="in no group"):
        end.send(0, 4, 1, runtime.stream(0))


def test_errors_between_devices_come_up_when_somebody_asks() -> None:
    runtime = played_runtime(2)
    plan = collective("all_reduce", ((0, 1, 2, 3),))
    session = played_session(plan, runtime)
    assert isinstance(session, DevicesSession)
    session.load_slot(plan.main.inputs[0], input_of(plan))
    for step in plan.main.steps:
        session.execute(step)
    end = session.peers.end((0, 1), 0)
    assert isinstance(end, HostCommunicator)
    end.fail("a link is down")
    with pytest.raises(ExecutionError, match="in this step or one before it: a link is down") as caught:
        session.sync()
    assert caught.value.step.name == "all-reduce.0"
    session.close()


def test_a_step_that_fails_on_one_device_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = played_runtime(2)
    plan = collective("all_reduce", ((0, 1, 2, 3),))
    session = played_session(plan, runtime)
    assert isinstance(session, DevicesSession)
    session.load_slot(plan.main.inputs[0], input_of(plan))

    def broken(*_: object) -> None:
        raise DeviceError("an illegal address")

    monkeypatch.setattr(session.sessions[1].lane, "launch", broken)
    with pytest.raises(ExecutionError, match="an illegal address"):
        session.execute(plan.main.steps[0])
    session.close()


DIVERGE = """HloModule m, num_partitions=2
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
yes { p = f32[2] parameter(0)
 ROOT s = f32[2] all-reduce(p), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add }
no { p = f32[2] parameter(0)
 ROOT n = f32[2] negate(p) }
ENTRY e { a = f32[2] parameter(0)
 q = u32[] partition-id()
 one = u32[] constant(1)
 c = pred[] compare(q, one), direction=EQ
 ROOT r = f32[2] conditional(c, a, a), true_computation=yes, false_computation=no }"""


@pytest.mark.parametrize("devices", [1, 2])
def test_ranks_that_never_come_are_an_error_and_no_hang(devices: int) -> None:
    plan = plan_of(hlo_program(DIVERGE))
    session = played_session(plan, played_runtime(devices))
    with pytest.raises(ExecutionError, match="never arrive") as caught:
        run_steps(session, input_of(plan))
    assert caught.value.code == "run.deadlock"
    session.close()


def test_a_whole_run_on_two_devices_by_a_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = played_runtime(2)
    monkeypatch.setattr("dtir.execute.run.load_backend", lambda name: played_backend(runtime))
    program = hlo_program(ADD)
    found = run_program(program, Request(backend="cupy", binding=device_binding(4, 2)))
    assert isinstance(found, Ok)
    report = found.value
    assert report.findings.ok
    assert report.record is not None
    assert report.record.backend["name"] == "cupy"
    assert [seat["device"] for seat in report.record.binding["ranks"]] == [0, 0, 1, 1]
    plain = run_program(program, Request())
    assert isinstance(plain, Ok)
    for name, array in plain.value.arrays().items():
        assert np.array_equal(report.arrays()[name], array)


# -- graphs -------------------------------------------------------------------------------------------------------------


def test_a_captured_run_is_issued_at_once_and_takes_no_memory() -> None:
    runtime = played_runtime()
    plan = collective("all_reduce", ((0, 1, 2, 3),), turns=5)
    session = played_session(plan, runtime)
    assert isinstance(session, DeviceSession)
    held = input_of(plan)
    session.load_slot(plan.main.inputs[0], held)
    captured = capture(session)
    memory, before = session.lane.arena.held_bytes, len(runtime.log)
    captured.launch()
    session.sync()
    assert session.lane.arena.held_bytes == memory
    assert [entry.what for entry in runtime.log[before:]][:1] == ["graph"]
    (found, *_) = rows(session.read_slot(output_leaves(plan)[0]))
    wanted = held.array.sum(axis=0) * 4**4
    assert np.array_equal(found, wanted)
    with pytest.raises(DeviceError, match="executes no steps any more"):
        session.execute(plan.main.steps[0])
    session.close()


def test_what_a_captured_run_gives_is_not_there_before_it_is_launched() -> None:
    plan = collective("all_reduce", ((0, 1),))
    session = played_session(plan, played_runtime())
    assert isinstance(session, DeviceSession)
    held = input_of(plan)
    session.load_slot(plan.main.inputs[0], held)
    captured = capture(session)
    (early, *_) = rows(session.read_slot(output_leaves(plan)[0]))
    captured.launch()
    session.sync()
    (late, *_) = rows(session.read_slot(output_leaves(plan)[0]))
    assert np.array_equal(late, held.array.sum(axis=0))
    assert not np.array_equal(early, late)


WITH_CONSTANT = """HloModule m, num_partitions=2
ENTRY e { a = f32[4] parameter(0)
 c = f32[4] constant({1, 2, 3, 4})
 ROOT r = f32[4] add(a, c) }"""


def test_what_needs_the_host_is_not_captured() -> None:
    for text in (WITH_CONSTANT, DIVERGE.replace("compare(q, one)", "compare(one, one)")):
        plan = plan_of(hlo_program(text))
        session = played_session(plan, played_runtime())
        assert isinstance(session, DeviceSession)
        session.load_slot(plan.main.inputs[0], input_of(plan))
        with pytest.raises(DeviceError, match="cannot be captured"):
            capture(session)


def test_a_capture_refuses_what_cuda_refuses() -> None:
    runtime = played_runtime()
    lane = Lane(runtime, 0)
    with lane.computing():
        array = runtime.to_device(np.ones(4, np.float32))
    with pytest.raises(DeviceError, match="memory would be taken"), runtime.capture(lane.compute, lane.arena):
        _ = array + array
    with pytest.raises(DeviceError, match="bringing data"), runtime.capture(lane.compute, lane.arena):
        runtime.to_device(np.ones(4, np.float32))
    with pytest.raises(DeviceError, match="waiting for data"), runtime.capture(lane.compute, lane.arena):
        float(array[0])
    with pytest.raises(DeviceError, match="synchronizing"), runtime.capture(lane.compute, lane.arena):
        lane.compute.synchronize()
    with pytest.raises(DeviceError, match="not been joined"), runtime.capture(lane.compute, lane.arena):
        _fork(runtime, lane)


def _fork(runtime: HostRuntime, lane: Lane) -> None:
    edge = runtime.event(0)
    lane.compute.record(edge)
    lane.transfer.wait(edge)
    lane.transfer.record(runtime.event(0))


def test_memory_that_is_not_there_is_an_error_of_the_step() -> None:
    plan = plan_of(hlo_program(ADD))
    runtime = played_runtime(1, memory_bytes=2048)
    session = played_session(plan, runtime)
    with pytest.raises(ExecutionError, match="out of device memory"):
        run_steps(session, input_of(plan))


# -- the judge would object ---------------------------------------------------------------------------------------------


def test_local_work_that_does_not_wait_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lane, "need", lambda self, operands: None)
    plan = plan_of(hlo_program(ADD))
    with pytest.raises(ExecutionError, match="reads memory before the write of another stream") as caught:
        run_steps(played_session(plan, played_runtime()), input_of(plan))
    assert caught.value.step.name == "t"


def test_communication_that_does_not_wait_is_seen() -> None:
    runtime = played_runtime()
    lane = Lane(runtime, 0)
    with lane.computing():
        array = runtime.to_device(np.ones(4, np.float32))
    with runtime.on(lane.transfer, lane.arena), pytest.raises(RaceError, match="reads memory before"):
        _ = array + array


def test_memory_given_back_too_early_is_seen() -> None:
    runtime = played_runtime()
    lane = Lane(runtime, 0)
    with lane.computing():
        array = runtime.to_device(np.ones(4, np.float32))
    with lane.transferring():
        result = array + array
    del array
    with lane.computing(), pytest.raises(RaceError, match="may still be in use"):
        runtime.to_device(np.ones(4, np.float32))
    del result


def test_events_that_nobody_set_are_seen() -> None:
    runtime = played_runtime()
    stream = runtime.stream(0)
    with pytest.raises(RaceError, match="before it is recorded"):
        stream.wait(runtime.event(0))
    with pytest.raises(RaceError, match="before it is recorded"):
        runtime.event(0).synchronize()


def test_kernels_outside_of_arrays_are_seen() -> None:
    runtime = played_runtime()
    with pytest.raises(RaceError, match="memory that no array holds"):
        runtime.copy(64, 128, 16, runtime.stream(0))


def test_device_arrays_do_not_pass_for_numpy_arrays() -> None:
    runtime = played_runtime()
    lane = Lane(runtime, 0)
    with lane.computing():
        array = runtime.to_device(np.ones((2, 3), np.float32))
        with pytest.raises(TypeError, match="implicit conversion"):
            np.asarray(array)
        with pytest.raises(TypeError, match="does not mix"):
            _ = array + np.ones((2, 3), np.float32)
        with pytest.raises(TypeError, match="cannot be put"):
            array[0] = np.ones(3, np.float32)
        with pytest.raises(NotImplementedError, match=r"maximum\.reduce"):
            runtime.xp.maximum.reduce(array)
        with pytest.raises(TypeError, match="no arrays of"):
            array.astype(numpy_dtype("f8e5m2"))
        assert type(np.add(array, array)).__name__ == "HostArray"
        assert type(np.stack([array, array])).__name__ == "HostArray"
        assert type(array.sum()).__name__ == "HostArray"
    with pytest.raises(DeviceError, match="outside of a session's stream"):
        _ = array + array


def test_peers_meet_where_groups_tie_them_together() -> None:
    peers = Peers(played_runtime(4), range(4), (0, 0, 1, 1, 2, 2, 3, 3))
    assert peers.together([(0, 1), (2, 3)]) == [(0,), (1,)]
    assert peers.together([(0, 2), (4, 6), (1, 3)]) == [(0, 1), (2, 3)]
    assert peers.together([(0, 2), (3, 4)]) == [(0, 1, 2)]


# -- collectives compared with the reference --------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("spoiled", [False, True])
def test_a_run_checks_its_collectives(devices: int, spoiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = played_runtime(devices)
    monkeypatch.setattr("dtir.execute.run.load_backend", lambda name: played_backend(runtime))
    if spoiled:
        run_kernel = HostKernels.run

        def run(kernels: HostKernels, launch: Launch) -> None:
            run_kernel(kernels, launch)
            if launch.expression.startswith("fold"):
                memory_at(*launch.writes[0])[3] ^= 0x40  # one element of the result

        monkeypatch.setattr(HostKernels, "run", run)
    found = run_program(
        hlo_program(ADD), Request(backend="cupy", check=True, binding=device_binding(4, devices), compare=False)
    ).or_raise()
    (row,) = found.collectives
    assert (row.wrong or 0) > 0 if spoiled else row.wrong == 0


CROSSED = """HloModule m, num_partitions=3
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
first { p = f32[2] parameter(0)
 ROOT s = f32[2] all-reduce(p), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add }
second { p = f32[2] parameter(0)
 ROOT s = f32[2] all-reduce(p), replica_groups={{1,2}}, channel_id=2, use_global_device_ids=true, to_apply=add }
third { p = f32[2] parameter(0)
 ROOT s = f32[2] all-reduce(p), replica_groups={{2,0}}, channel_id=3, use_global_device_ids=true, to_apply=add }
ENTRY e { a = f32[2] parameter(0)
 q = u32[] partition-id()
 i = s32[] convert(q)
 ROOT r = f32[2] conditional(i, a, a, a), branch_computations={first,second,third} }"""


def test_ranks_that_wait_in_a_circle_are_an_error_and_no_hang() -> None:
    plan = plan_of(hlo_program(CROSSED))
    session = played_session(plan, played_runtime(3))
    with pytest.raises(ExecutionError, match="never arrive"):
        run_steps(session, input_of(plan))
    session.close()
