from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers import load_bytes, load_path
from dtir.importers.chakra.messages import read_metadata, read_node
from dtir.importers.chakra.wire import WireError, fields, messages, signed, varint, zigzag
from dtir.ir import Collective, DistributedTaskIR, LocalCompute, PointToPoint
from tests.helpers import traces
from tests.helpers.shared import shared_params
from tests.helpers.traces import chakra, field, kept, node


def program(data: bytes, name: str = "x.0.et") -> DistributedTaskIR:
    found = load_bytes(data, name=name)
    assert found.program is not None, found.diagnostics
    return found.program


# -- the wire ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
def test_varints_are_read_as_they_are_written(number: int) -> None:
    written = traces.varint(number)
    assert varint(written, 0) == (number, len(written))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers(number: int) -> None:
    assert signed(number % 2**64) == number
    assert zigzag((number << 1) ^ (number >> 63)) == number


@given(st.binary(max_size=64))
def test_any_bytes_are_fields_or_refused(data: bytes) -> None:
    for read in (
        lambda: list(fields(data)),
        lambda: list(messages(data)),
        lambda: read_node(data),
        lambda: read_metadata(data),
    ):
        with contextlib.suppress(WireError):
            read()


@pytest.mark.parametrize("member", [7, 9, 11, 13])
def test_every_integer_member_of_a_value_counts(member: int) -> None:
    data = (
        field(1, 1) + field(3, 7) + traces.attribute("comm_type", 2, member) + traces.attribute("comm_size", 64, member)
    )
    (task,) = program(chakra(data)).tasks
    assert isinstance(task.body, Collective)
    assert (str(task.operation), task.body.spec.message_bytes) == ("trace.all_gather", 64)


# -- nodes ---------------------------------------------------------------------------------------------------------------


def test_the_hosts_side_of_a_collective_is_not_counted_again() -> None:
    found = load_bytes(
        chakra(node(1, 7, "c10d::allreduce_(0)"), node(2, 7, "ncclKernel_AllReduce_RING_LL_Sum_float(x)", [1])),
        name="x.0.et",
    )
    assert found.program is not None
    assert [type(task.body) for task in found.program.tasks] == [LocalCompute, Collective]
    assert "trace.cpu_side" in [item.code for item in found.diagnostics]


def test_without_a_kernel_the_call_itself_is_the_collective() -> None:
    (task,) = program(chakra(node(1, 7, "c10d::broadcast_(0)"))).tasks
    assert str(task.operation) == "trace.broadcast"


def test_a_kind_that_does_not_exist_is_local_work_that_says_so() -> None:
    found = load_bytes(chakra(node(1, 7, "odd", comm_type=99)), name="x.0.et")
    assert found.program is not None
    assert isinstance(found.program.tasks[0].body, LocalCompute)
    assert "trace.kind_unknown" in [item.code for item in found.diagnostics]


def test_the_other_end_of_a_transfer_is_the_files_rank() -> None:
    (task,) = program(chakra(node(4, 6, "recv", comm_src=5)), name="ring.2.et").tasks
    assert isinstance(task.body, PointToPoint)
    assert (task.body.spec.source_rank, task.body.spec.destination_rank) == (5, 2)


def test_content_is_believed_before_the_name() -> None:
    found = load_bytes(chakra(node(1, 5, "s", comm_src=1, comm_dst=0)), name="x.7.et")
    assert found.program is not None
    assert [issue.rank for issue in found.program.issue] == [1]
    assert "trace.rank_conflict" in [item.code for item in found.diagnostics]


def test_dependencies_on_nothing_are_counted_and_left_out() -> None:
    found = load_bytes(chakra(node(1, 4, "a", [17, 18]), node(0, 4, "b", [1])), name="x.0.et")
    (item,) = found.diagnostics.of_code("trace.dangling")
    assert item.message.startswith("2 ")
    assert found.program is not None
    assert found.program.tasks[1].dependencies == (found.program.tasks[0].id,)


def test_a_cut_stream_shows_what_stands_before_the_cut() -> None:
    data = kept("pp4_1f1b_chain")[0].read_bytes()
    whole = len(program(data).tasks)
    found = load_bytes(data[:-3], name="x.0.et")
    assert [item.code for item in found.diagnostics.errors] == ["trace.truncated"]
    assert found.program is not None
    assert len(found.program.tasks) == whole - 1


def test_a_stream_of_no_nodes_is_a_rank_that_does_nothing() -> None:
    found = load_bytes(chakra(), name="x.3.et")
    assert found.program is not None
    assert found.program.diagnostics().ok
    assert [issue.steps for issue in found.program.issue] == [()]


@pytest.mark.parametrize("begin", [b"\x00", b""])
def test_a_file_without_version_is_read_all_the_same(begin: bytes) -> None:
    nodes = [node(0, 7, "all_reduce", comm_type=0, comm_size=8), node(70_000, 4, "mm " * 60, [0])]
    data = begin + b"".join(traces.varint(len(item)) + item for item in nodes)
    found = load_bytes(data, name="x.1.et")
    assert found.format == "chakra"
    assert found.program is not None
    assert [task.name for task in found.program.tasks] == ["all_reduce", "mm " * 60]
    assert "trace.no_version" in [item.code for item in found.diagnostics]


def test_the_json_form_reads_alike() -> None:
    nodes = [
        {"Id": 1, "Name": "mm", "NodeType": 4, "data_deps": [], "is_cpu_op": True},
        {"Id": 2, "Name": "ar", "NodeType": 7, "ctrlDeps": [1], "comm_type": 0, "comm_size": 64},
    ]
    found = load_bytes(json.dumps({"workload_graph": nodes}).encode(), name="x.1.json")
    binary = load_bytes(
        chakra(node(1, 4, "mm", is_cpu_op=1), node(2, 7, "ar", [1], comm_type=0, comm_size=64)), name="x.1.et"
    )
    assert found.program is not None
    assert binary.program is not None
    assert (found.format, binary.format) == ("chakra-json", "chakra")
    assert [(t.name, t.body) for t in found.program.tasks] == [(t.name, t.body) for t in binary.program.tasks]


# -- real files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", shared_params("inputs/chakra/**/*.et"))
def test_real_files_read_as_their_truth_says(path: Path) -> None:
    truth: dict[str, Any] = json.loads(path.with_name(path.name + ".truth.json").read_text())
    found = load_path(path)
    assert found.program is not None
    assert found.diagnostics.ok
    assert found.program.diagnostics().ok
    tasks = [task for task in found.program.tasks if str(task.operation) != "trace.nothing"]
    assert len(tasks) == truth["n_nodes"]
    called = [
        (task.attributes["trace.kind"].upper(), task.body.spec.message_bytes, task.attributes["trace.group"] or None)
        for task in tasks
        if isinstance(task.body, Collective)
    ]
    wanted = [(item["comm_type"], item["comm_size"], item["pg"]) for item in truth["collectives"]]
    assert sorted(called, key=str) == sorted(wanted, key=str)
    moved = [
        (
            task.body.spec.source_rank,
            task.body.spec.destination_rank,
            int(task.attributes["trace.tag"]),
            task.body.spec.message_bytes,
        )
        for task in tasks
        if isinstance(task.body, PointToPoint)
    ]
    rank = found.program.issue[0].rank
    ends = [
        (
            rank if item["src"] is None else item["src"],
            rank if item["dst"] is None else item["dst"],
            item["tag"] or 0,
            item["size"],
        )
        for item in truth["p2p"]
    ]
    assert sorted(moved) == sorted(ends)


@pytest.mark.parametrize("name", ["deadlock_pg_order", "p2p_unmatched", "pp4_1f1b_chain"])
def test_damaged_streams_are_never_a_surprise(name: str) -> None:
    draw = random.Random(7)
    for path in kept(name):
        data = path.read_bytes()
        for _ in range(40):
            broken = bytearray(data[: draw.randint(0, len(data))])
            for _ in range(draw.randint(0, 4)):
                if broken:
                    broken[draw.randrange(len(broken))] = draw.randrange(256)
            found = load_bytes(bytes(broken), name=path.name)
            assert found.program is not None or found.diagnostics.errors
            if found.program is not None:
                assert found.program.diagnostics().ok
