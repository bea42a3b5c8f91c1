from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dtir.importers import Imported, load_bytes, load_path, open_set
from dtir.importers.rank_set.words import call_kind, transfer_side
from dtir.ir import Collective, DistributedTask, LocalCompute, PointToPoint
from tests.helpers.shared import shared_params

MICROSECOND = 1_000


def slice_(name: str, start: float, length: float = 1.0, category: str = "cpu_op", **arguments: Any) -> dict[str, Any]:
    named = {key.replace("_", " "): value for key, value in arguments.items()}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": named}


def described(collective: str, start: float, elements: int = 8, **more: Any) -> dict[str, Any]:
    arguments = {
        "Collective name": collective,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 2,
        "dtype": "Float",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1]",
        **more,
    }
    return {**slice_("record_param_comms", start, 3.0), "args": arguments}


def trace(*events: Any, info: dict[str, Any] | None = None, name: str = "job.json", **more: Any) -> Imported:
    whole = {"schemaVersion": 1, "distributedInfo": info or {"backend": "nccl", "rank": 0, "world_size": 2}, **more}
    return load_bytes(json.dumps({**whole, "traceEvents": list(events)}).encode(), name=name)


def communications(found: Imported) -> list[DistributedTask]:
    assert found.program is not None
    assert found.program.diagnostics().ok
    return [task for task in found.program.tasks if isinstance(task.body, (Collective, PointToPoint))]


def test_metadata_say_what_was_called_and_the_kernel_when_it_ran() -> None:
    call = described("allreduce", 10.0)
    call["args"]["External id"] = 7
    kernel = slice_("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20.5, 2.0, "kernel", External_id=7)
    annotation = slice_("nccl:all_reduce", 10.5, 1.0, "user_annotation")
    found = trace(call, kernel, annotation, slice_("aten::mm", 1.0))
    (task,) = communications(found)
    assert isinstance(task.body, Collective)
    assert (task.ranks, task.body.spec.message_bytes) == ((0, 1), 32)
    times = {time.task: (time.start_ns, time.end_ns) for time in found.times}
    assert times[task.id] == (20_500, 22_500)


def test_a_wait_is_no_collective() -> None:
    found = trace(described("wait", 1.0), described("broadcast", 2.0))
    assert [str(task.operation) for task in communications(found)] == ["trace.broadcast"]


def test_a_shortened_list_of_ranks_is_told_by_start_and_stride() -> None:
    more = {"Process Group Ranks": "[0, 2, ..., 6]", "Global rank start": 0, "Global rank stride": 2, "Group size": 4}
    call = described("allreduce", 1.0, **{**more, "Process Group Name": "3", "Process Group Description": "dp"})
    (task,) = communications(trace(call, info={"rank": 2, "world_size": 8}))
    assert task.ranks == (0, 2, 4, 6)


def test_splits_of_uneven_exchanges_are_texts() -> None:
    (task,) = communications(
        trace(described("all_to_allv", 1.0, **{"In split size": "[3, 5]", "Out split size": "[3, 2]"}))
    )
    assert task.attributes["trace.send_splits"] == ((0, (3, 5)),)
    assert task.attributes["op.vector"] is True


def test_gloo_has_operators_and_annotations_on_other_threads() -> None:
    shapes, inputs = {"Input Dims": [[[2]], [[8]], []], "Input type": ["TensorList", "TensorList", ""]}, ["", "", ""]
    operator = {**slice_("c10d::_reduce_scatter_base_", 5.0), "args": {**shapes, "Concrete Inputs": inputs}}
    worker = {
        **slice_("gloo:all_reduce", 6.0, 9.0, "user_annotation"),
        "args": {"Input Dims": [[8]], "Input type": ["float"], "Record function id": 3},
    }
    found = trace(operator, worker, info={"rank": 1, "world_size": 4, "pg_count": 1, "pg_config": []})
    (task,) = communications(found)
    assert str(task.operation) == "trace.reduce_scatter"
    assert isinstance(task.body, Collective)
    assert task.body.spec.message_bytes == 32
    assert task.ranks == (0, 1, 2, 3)
    time = next(time for time in found.times if time.task == task.id)
    assert (time.start_ns, time.end_ns) == (6_000, 15_000)


def test_old_traces_have_annotations_alone() -> None:
    event = {
        **slice_("nccl:all_to_all", 1.0, 1.0, "user_annotation"),
        "args": {"Input Dims": [[4, 2]], "Input type": ["int"]},
    }
    (task,) = communications(trace(event))
    assert isinstance(task.body, Collective)
    assert (str(task.operation), task.body.spec.message_bytes) == ("trace.all_to_all", 32)


def test_transfers_name_peer_and_tag() -> None:
    send = {
        **slice_("c10d::send", 1.0),
        "args": {
            "Input Dims": [[[8]], [], [], []],
            "Input type": ["TensorList", "", "Scalar", "Scalar"],
            "Concrete Inputs": ["", "", "1", "5"],
        },
    }
    (task,) = communications(trace(send))
    assert isinstance(task.body, PointToPoint)
    assert (task.body.spec.source_rank, task.body.spec.destination_rank, task.body.spec.channel) == (0, 1, "5")


def test_what_lies_between_is_joined_and_counted() -> None:
    found = trace(
        slice_("aten::mm", 1.0),
        slice_("aten::mm", 2.0),
        slice_("aten::add", 3.0),
        described("allreduce", 4.0),
        slice_("aten::relu", 9.0),
    )
    assert found.program is not None
    local = [task for task in found.program.tasks if isinstance(task.body, LocalCompute)]
    assert [task.attributes.get("trace.operations", 1) for task in local] == [3, 1]
    assert dict(local[0].attributes["trace.most_frequent"]) == {"aten::mm": 2, "aten::add": 1}
    first = next(time for time in found.times if time.task == local[0].id)
    assert (first.start_ns, first.end_ns) == (1_000, 4_000)


def test_a_bare_list_of_events_is_a_trace_too() -> None:
    found = load_bytes(json.dumps([slice_("aten::mm", 1.0), described("allreduce", 2.0)]).encode(), name="t.rank1.json")
    assert found.format == "kineto"
    assert len(communications(found)) == 1


@pytest.mark.parametrize("bare", [False, True])
def test_a_cut_trace_shows_what_stands_before_the_cut(bare: bool) -> None:
    events = [described("allreduce", 1.0), described("broadcast", 2.0), described("allreduce", 3.0)]
    info = {"distributedInfo": {"rank": 1, "world_size": 4}, "schemaVersion": 1}
    text = json.dumps(events if bare else {**info, "traceEvents": events})
    found = load_bytes(text[:-20].encode(), name="t.rank1.json")
    (error,) = found.diagnostics.errors
    assert (error.code, "2 entries" in error.message) == ("trace.json", True)
    assert [task.name for task in communications(found)] == ["allreduce", "broadcast"]
    assert found.program is not None
    assert found.program.mesh.size == (2 if bare else 4)


@pytest.mark.parametrize("value", ["nan", None, [], 1e300, -5, {"a": 1}, 2**70])
def test_absurd_times_and_counts_are_no_surprise(value: Any) -> None:
    found = trace(
        {**slice_("aten::mm", 1.0), "ts": value},
        {**described("allreduce", 2.0), "dur": value},
        described("broadcast", 3.0, **{"In msg nelems": value}),
        value,
    )
    assert len(communications(found)) == 2


@pytest.mark.parametrize(
    "path", shared_params("inputs/traces/**/*kineto*.json*") + shared_params("inputs/traces/hta/*.json.gz")
)
def test_real_traces_read_as_their_truth_says(path: Path) -> None:
    if path.name.endswith(".truth.json"):
        path = path.with_name(path.name.replace(".truth.json", ".json.gz"))
        path = path if path.is_file() else path.with_suffix("")
    truth: dict[str, Any] = json.loads(
        path.with_name(path.name.removesuffix(".gz").removesuffix(".json") + ".truth.json").read_text()
    )
    found = load_path(path)
    assert found.program is not None
    assert found.diagnostics.ok
    assert found.program.diagnostics().ok
    assert found.program.attributes["trace.events"] == truth["n_events"]
    info = truth["distributedInfo"] or {}
    assert found.program.issue[0].rank == info.get("rank", 0)
    assert found.program.mesh.size == info.get("world_size", 1)
    called = communications(found)
    if truth.get("collectives_cpu_side"):
        counts: Counter[tuple[str, str]] = Counter()
        size: Counter[tuple[str, str]] = Counter()
        by_id = {value.id: value for value in found.program.values}
        for task in called:
            assert isinstance(task.body, Collective)
            key = task.attributes["op_name"], by_id[task.inputs[0]].type.dtype
            counts[key] += 1
            size[key] += int(str(task.body.spec.message_bytes))
        wanted = [item for item in truth["collectives_cpu_side"] if item["collective"] != "wait"]
        names = {"Float": "f32", "Long": "s64"}
        assert dict(counts) == {(item["collective"], names[item["dtype"]]): item["count"] for item in wanted}
        assert dict(size) == {(item["collective"], names[item["dtype"]]): item["bytes_in"] for item in wanted}
    else:
        seen = truth.get("cpu_ops", {})
        operators = {
            name: count
            for name, count in seen.items()
            if name.startswith("c10d::") and (call_kind(name) or transfer_side(name) is not None)
        }
        assert Counter(task.attributes["op_name"] for task in called) == Counter(operators or seen)


def test_all_ranks_of_a_real_job_are_one_program(shared_data: Path) -> None:
    from dtir.verify import verify

    found = open_set(sorted((shared_data / "inputs/traces/torch_gloo4/zoo").glob("zoo.kineto.rank?.json")))
    assert found.program is not None
    assert len(communications(found)) == 15 + 4
    assert verify(found.program).ok
    assert len({time.rank for time in found.times}) == 4


def test_memory_does_not_grow_with_the_size_of_a_group() -> None:
    size = 1_000_000
    large = {"Process Group Ranks": "[0, 1, ...]", "Group size": size, "Global rank start": 0, "Global rank stride": 1}
    events = [
        described(
            "allreduce", float(number), **{**large, "Process Group Name": f"g{number}", "Process Group Description": ""}
        )
        for number in range(300)
    ]
    tracemalloc.start()
    found = trace(*events, info={"rank": 0, "world_size": size})
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(len(task.ranks) == size for task in communications(found))
    assert peak_bytes < 30_000_000
