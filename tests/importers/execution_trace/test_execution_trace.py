from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dtir.importers import Imported, load_bytes, load_path, open_set
from dtir.importers.rank_set.words import call_kind, transfer_side
from dtir.ir import Broadcast, Collective, DistributedTask, PointToPoint
from dtir.ir.reductions import ReductionKind
from tests.helpers.shared import shared_params

TENSOR = [24, 25, 0, 8, 4, "cuda:0"]


def old(
    identifier: int, name: str, inputs: list[Any], shapes: list[Any], types: list[str], **more: Any
) -> dict[str, Any]:
    return {
        "id": identifier,
        "name": name,
        "inputs": inputs,
        "input_shapes": shapes,
        "input_types": types,
        "outputs": more.pop("outputs", []),
        "output_shapes": more.pop("output_shapes", []),
        "output_types": more.pop("output_types", []),
        **more,
    }


def new(
    identifier: int, name: str, values: list[Any], shapes: list[Any], types: list[str], **more: Any
) -> dict[str, Any]:
    attributes = [{"name": key, "type": "", "value": value} for key, value in more.pop("attrs", {}).items()]
    empty = {"values": [], "shapes": [], "types": []}
    inputs = {"values": values, "shapes": shapes, "types": types}
    return {
        "id": identifier,
        "name": name,
        "inputs": inputs,
        "outputs": more.pop("outputs", empty),
        "attrs": attributes,
        **more,
    }


def trace(*nodes: dict[str, Any], schema: str = "1.1.1-chakra.0.0.4", name: str = "job.rank0.json") -> Imported:
    return load_bytes(json.dumps({"schema": schema, "pid": 1, "nodes": list(nodes)}).encode(), name=name)


def communications(found: Imported) -> list[DistributedTask]:
    assert found.program is not None
    assert found.program.diagnostics().ok
    return [task for task in found.program.tasks if isinstance(task.body, (Collective, PointToPoint))]


def test_the_old_schema_names_a_group_by_a_handle() -> None:
    types = ["Tensor(float)", "Int", "Int", "Int", "String", "GenericList[Int,Int]", "GenericList[Int,Int]"]
    shapes = [[6], [], [], [], [], [[], []], [[], []]]

    def rank(number: int) -> bytes:
        values = [TENSOR, 147, 94594108284448 + number, number, "all_to_allv", [2, 4], [3, 3]]
        node = old(
            7,
            "record_param_comms",
            values,
            shapes,
            types,
            outputs=[TENSOR],
            output_shapes=[[6]],
            output_types=["Tensor(float)"],
        )
        wait = old(8, "record_param_comms", [147, 0, 0, "wait", [], []], [[]] * 6, ["Int"] * 6)
        return json.dumps({"schema": "1.0.1", "nodes": [node, wait]}).encode()

    found = open_set([(f"job.rank{number}.json", rank(number)) for number in range(2)])
    (task,) = communications(found)
    assert (str(task.operation), task.name, task.ranks) == ("trace.all_to_all", "all_to_allv", (0, 1))
    assert task.attributes["op.vector"] is True
    assert "trace.split_mismatch" in [item.code for item in found.diagnostics]


def test_the_newer_schema_names_group_root_and_members() -> None:
    values = [[TENSOR], 33, ["4", "fsdp"], 1, "broadcast", [], [], 1, 2, 3]
    types = [
        "GenericList[Tensor(c10::BFloat16)]",
        "Int",
        "Tuple[String,String]",
        *["Int", "String", "GenericList[]", "GenericList[]"],
        *["Int"] * 3,
    ]
    found = trace(new(5, "record_param_comms", values, [[[8]], *[[]] * 9], types), name="job.rank3.json")
    (task,) = communications(found)
    assert isinstance(task.body, Collective)
    assert isinstance(task.body.spec, Broadcast)
    assert (task.ranks, task.body.spec.root, task.body.spec.message_bytes) == ((1, 3, 5), 3, 16)


def test_attributes_say_what_arguments_do_not() -> None:
    attributes = {
        "collective_name": "allreduce",
        "pg_name": "2",
        "pg_size": 4,
        "in_msg_nelems": 10,
        "out_msg_nelems": 10,
        "dtype": "Float",
    }
    found = trace(new(5, "record_param_comms", [], [], [], attrs=attributes))
    (task,) = communications(found)
    assert isinstance(task.body, Collective)
    assert task.body.spec.message_bytes == 40
    assert task.attributes["trace.group"] == "2"


def test_operators_of_gloo_are_counted_once_and_their_wrappers_name_the_reduction() -> None:
    wrapper = new(
        1, "_c10d_functional::all_reduce", [TENSOR, "max", "0"], [[8], [], []], ["Tensor(float)", "String", "String"]
    )
    operator = new(
        2,
        "c10d::allreduce_",
        [[TENSOR], "<Object>"],
        [[[8]], []],
        ["GenericList[Tensor(float)]", "Object"],
        ctrl_deps=1,
    )
    annotation = new(3, "gloo:all_reduce", [TENSOR], [[8]], ["Tensor(float)"], ctrl_deps=2)
    found = trace(wrapper, operator, annotation, new(4, "aten::relu", [TENSOR], [[8]], ["Tensor(float)"]))
    (task,) = communications(found)
    assert isinstance(task.body, Collective)
    assert getattr(task.body.spec, "reduction", None) is ReductionKind.MAX
    assert task.attributes["trace.group"] == ""
    assert found.program is not None
    assert found.program.tasks[-1].name == "aten::relu"


def test_operations_come_in_the_order_in_which_they_began() -> None:
    late = new(9, "c10d::barrier", [], [], [])
    early = new(
        3,
        "c10d::broadcast_",
        [[TENSOR], "<Object>", 0],
        [[[8]], [], []],
        ["GenericList[Tensor(float)]", "Object", "Int"],
    )
    assert [task.name for task in communications(trace(late, early))] == ["c10d::broadcast_", "c10d::barrier"]


def test_groups_that_the_observer_lists_first() -> None:
    config = json.dumps(
        [
            {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2]},
            {"pg_name": "7", "pg_desc": "tp", "ranks": [0, 2]},
        ]
    )
    node = new(1, "## process_group:init ##", [config], [[]], ["String"])
    values = [[TENSOR], 33, ["7", "tp"], 0, "allreduce", [], []]
    call = new(2, "record_param_comms", values, [[[8]]], ["GenericList[Tensor(float)]"])
    found = trace(node, call)
    (task,) = communications(found)
    assert found.program is not None
    assert (found.program.mesh.size, task.ranks) == (3, (0, 2))


def test_nodes_that_are_none_are_counted() -> None:
    data = {"schema": "1.0.1", "nodes": [3, {"id": "x"}, old(1, "c10d::barrier", [], [], [])]}
    found = load_bytes(json.dumps(data).encode(), name="job.rank0.json")
    assert "trace.malformed" in [item.code for item in found.diagnostics]
    assert len(communications(found)) == 1


@pytest.mark.parametrize(
    "path", shared_params("inputs/traces/**/*.et.rank?.json.gz") + shared_params("inputs/traces/param_*/*_et*.json.gz")
)
def test_real_traces_read_as_their_truth_says(path: Path) -> None:
    truth: dict[str, Any] = json.loads(path.with_name(path.name.removesuffix(".json.gz") + ".truth.json").read_text())
    found = load_path(path)
    assert found.program is not None
    assert found.diagnostics.ok
    assert found.program.attributes["trace.nodes"] == truth["n_nodes"]
    assert found.program.attributes["trace.schema"] == (truth["schema"],)
    named = {task.id: task for task in found.program.tasks}
    issued = [named[step[0]] for step in found.program.issue[0].steps]
    called = [task.attributes["op_name"] for task in issued if isinstance(task.body, (Collective, PointToPoint))]
    stated = [item["collective"] for item in truth["record_param_comms"] if item["collective"] != "wait"]
    operators = {
        name: count
        for name, count in truth["names"].items()
        if name.startswith("c10d::") and (call_kind(name) is not None or transfer_side(name) is not None)
    }
    if stated:
        assert called == stated
    else:
        assert Counter(called) == Counter(operators)
    elements = [value.type.shape for value in found.program.values if value.name.endswith(".in")]
    if stated:
        shapes = [item["shapes"] for item in truth["record_param_comms"] if item["collective"] != "wait"]
        assert elements == [tuple(shape[0] if shape and isinstance(shape[0], list) else shape) for shape in shapes]


def test_all_ranks_of_a_real_job_agree_about_their_splits(shared_data: Path) -> None:
    found = open_set(sorted((shared_data / "inputs/traces/param_dlrm8").glob("dlrm_et.rank?.json.gz")))
    assert found.program is not None
    assert found.program.mesh.size == 8
    assert not {"trace.split_mismatch", "trace.rank_missing", "trace.group_unknown"} & {
        item.code for item in found.diagnostics
    }
    assert all(task.ranks == tuple(range(8)) for task in communications(found))
    assert len(communications(found)) == 8


def test_cut_traces_are_never_a_surprise(shared_data: Path) -> None:
    path = shared_data / "inputs/traces/torch_gloo4/zoo/zoo.et.rank0.json.gz"
    data = gzip.decompress(path.read_bytes())
    for end in range(200, len(data), len(data) // 40):
        found = load_bytes(data[:end], name="zoo.et.rank0.json")
        assert found.diagnostics.errors
