"""Damaged traces of every format: findings, never an exception, and every program that comes back is a whole one."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from dtir.importers import load_bytes, open_set
from dtir.verify import verify
from tests.helpers.traces import chakra, entry, node, recorder

TENSOR = [24, 25, 0, 8, 4, "cuda:0"]
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    2**70,
    1e308,
    "",
    "x",
    "[0, 1]",
    "[0, ...]",
    [],
    [1, [2]],
    {},
    {"a": 1},
    1.5,
    "9" * 30,
]


def execution_trace() -> Any:
    call = {
        "id": 5,
        "name": "record_param_comms",
        "ctrl_deps": 2,
        "inputs": {
            "values": [[TENSOR], 33, ["4", "dp"], 1, "all_to_allv", [2, 6], [4, 4], 0, 1, 2],
            "shapes": [[[8]], [], [[], []], [], [], [[], []], [[], []], [], [], []],
            "types": [
                "GenericList[Tensor(float)]",
                "Int",
                "Tuple[String,String]",
                *["Int", "String", "GenericList[Int,Int]", "GenericList[Int,Int]"],
                *["Int"] * 3,
            ],
        },
        "outputs": {"values": [[TENSOR]], "shapes": [[[8]]], "types": ["GenericList[Tensor(float)]"]},
        "attrs": [
            {"name": "pg_name", "type": "string", "value": "4"},
            {"name": "pg_size", "type": "uint64", "value": 2},
        ],
    }
    other = {
        "id": 6,
        "name": "c10d::send",
        "inputs": [[TENSOR], "<Object>", 1, 0],
        "input_shapes": [[[8]], [], [], []],
        "input_types": ["Tensor(float)", "", "Int", "Int"],
    }
    return {"schema": "1.1.1-chakra.0.0.4", "nodes": [call, other, {**call, "id": 7}]}


def profile() -> Any:
    arguments = {
        "Collective name": "allreduce",
        "In msg nelems": 8,
        "Out msg nelems": 8,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "3",
        "Process Group Ranks": "[0, 1]",
        "Global rank start": 0,
        "Global rank stride": 1,
        "External id": 4,
    }
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "record_param_comms",
        "pid": 1,
        "tid": 2,
        "ts": 5.5,
        "dur": 2.5,
        "args": arguments,
    }
    kernel = {**event, "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"}
    send = {
        **event,
        "name": "c10d::send",
        "args": {
            "Input Dims": [[[8]], [], [], []],
            "Input type": ["TensorList", "", "", ""],
            "Concrete Inputs": ["", "", "1", "0"],
        },
    }
    info = {
        "backend": "nccl",
        "rank": 0,
        "world_size": 2,
        "pg_count": 1,
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}],
    }
    return {
        "schemaVersion": 1,
        "distributedInfo": info,
        "baseTimeNanoseconds": 17,
        "traceEvents": [event, kernel, send, {**event, "ts": 9.0}],
    }


def dump() -> Any:
    calls = [
        entry("nccl:all_reduce", 1),
        entry("nccl:all_gather", 2, (4,), group="2"),
        entry("nccl:send 0->1", 0, is_p2p=True),
    ]
    return json.loads(recorder(*calls, groups={"2": "[0, 1]"}))


def feeder() -> Any:
    nodes = [
        {"Id": 1, "Name": "mm", "NodeType": 4, "data_deps": []},
        {"Id": 2, "Name": "ar", "NodeType": 7, "ctrlDeps": [1], "comm_type": 0, "comm_size": 64},
        {"Id": 3, "Name": "s", "NodeType": 5, "comm_dst": 1, "data_deps": [2, 9]},
    ]
    return {"workload_graph": nodes}


def tree() -> Any:
    leaf = {"fqn": "M.0", "module_type": "x", "parameters": [["weight", "(Shard(dim=0),)"]], "children": []}
    leaf |= {"collectives_forward": [["c10d.allreduce_", 1]], "collectives_backward": []}
    operation = {"name": "aten.mm.default", "device_mesh": "DeviceMesh((tp=2), 'cpu', stride=(1,))"}
    return {**leaf, "fqn": "Global", "children": [{**leaf, "operations_forward": [operation]}]}


def table() -> Any:
    mesh = {"axis_names": ["a", "b"], "shape": {"a": 2, "b": 2}}
    return {
        "x": {"mesh": mesh, "partition_spec": [["a", "b"], None], "shape": [8, 4]},
        "y": {"mesh": mesh, "partition_spec": [], "shape": []},
    }


MAKERS: list[Callable[[], Any]] = [execution_trace, profile, dump, feeder, tree, table]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found += [(value, key), *places(value[key])]
    return found


@pytest.mark.parametrize("make", MAKERS)
def test_any_field_may_be_anything(make: Callable[[], Any]) -> None:
    draw = random.Random(3)
    whole = json.dumps(make()).encode()
    for _ in range(150):
        value = json.loads(whole)
        for _ in range(draw.randint(1, 3)):
            container, key = draw.choice(places(value) or [({}, "all gone")])
            if draw.random() < 0.3 and isinstance(container, dict):
                container.pop(key, None)
            else:
                container[key] = copy.deepcopy(draw.choice(ODD))
        data = json.dumps(value).encode()
        found = load_bytes(data, name="job.rank0.json")
        assert found.program is not None or found.diagnostics.errors
        if found.program is not None:
            assert found.program.diagnostics().ok
            verify(found.program)
        joined = open_set([("job.rank0.json", data), ("job.rank1.json", whole)])
        assert joined.program is None or joined.program.diagnostics().ok


@pytest.mark.parametrize("make", MAKERS)
def test_any_cut_is_a_finding(make: Callable[[], Any]) -> None:
    whole = json.dumps(make()).encode()
    assert load_bytes(whole, name="job.rank0.json").program is not None
    for end in range(1, len(whole), 29):
        assert load_bytes(whole[:end], name="job.rank0.json").diagnostics.errors


def test_streams_of_odd_nodes() -> None:
    draw = random.Random(5)
    words = ("comm_type", "comm_size", "comm_dst", "comm_src", "comm_tag", "pg_name", "involved_dim", "odd")
    numbers = (-1, 0, 1, 7, 2**31, 2**63 - 1, -(2**63))
    for _ in range(150):
        nodes = [
            node(
                draw.randrange(4),
                draw.randrange(9),
                draw.choice(("", "c10d::allreduce_", "ncclKernel_Broadcast_RING", "\x00\ud7ff")),
                [draw.randrange(5) for _ in range(draw.randrange(3))],
                **{draw.choice(words): draw.choice(numbers) for _ in range(draw.randrange(4))},
            )
            for _ in range(draw.randrange(7))
        ]
        found = open_set([("x.0.et", chakra(*nodes)), ("x.1.et", chakra(*reversed(nodes)))])
        assert found.program is not None
        assert found.program.diagnostics().ok
        verify(found.program)
