from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dtir.importers import load_bytes, load_path
from dtir.ir import Collective, PointToPoint
from tests.helpers.shared import shared_params
from tests.helpers.traces import entry, kept, recorder


def test_an_entry_becomes_a_collective_with_shape_type_and_group() -> None:
    found = load_bytes(
        recorder(
            entry("nccl:_all_gather_base", 3, (2, 3), group="5", output_sizes=[[8, 3]]),
            ranks=range(8),
            groups={"5": "[1, 3, 5, 7]"},
        ),
        name="j.rank1.json",
    )
    assert found.program is not None
    assert found.diagnostics.ok
    (task,) = found.program.tasks
    assert isinstance(task.body, Collective)
    assert (task.ranks, task.body.spec.message_bytes) == ((1, 3, 5, 7), 8 * 3 * 4)
    operand, result = found.program.values
    assert (operand.type.shape, operand.type.dtype, result.type.shape) == ((2, 3), "f32", (8, 3))


def test_transfers_name_their_peer_and_are_waited_for_at_the_end() -> None:
    sent = entry("nccl:send 0->1", 0, is_p2p=True)
    found = load_bytes(recorder(sent), name="j.rank0.json")
    assert found.program is not None
    transfer, wait = found.program.tasks
    assert isinstance(transfer.body, PointToPoint)
    assert (transfer.body.spec.source_rank, transfer.body.spec.destination_rank) == (0, 1)
    assert wait.completes == (transfer.id,)
    assert "trace.waits_unrecorded" in [item.code for item in found.diagnostics]


def test_a_recorder_that_recorded_nothing() -> None:
    data = {"version": "2.10", "pg_config": {"": {"desc": "", "name": "", "ranks": "[]"}}, "pg_status": {}}
    found = load_bytes(json.dumps(data).encode(), name="j.rank0.json")
    assert found.format == "flight-recorder"
    assert found.program is not None
    assert "trace.no_entries" in [item.code for item in found.diagnostics]


def test_what_is_no_entry_is_counted() -> None:
    data = json.loads(recorder(entry("nccl:all_reduce", 1)))
    data["entries"] += [17, {"profiling_name": 3}, entry("nccl:frobnicate", 2)]
    found = load_bytes(json.dumps(data).encode(), name="j.rank0.json")
    assert [item.code for item in found.diagnostics.warnings] == ["trace.malformed", "trace.kind_unknown"]
    assert found.program is not None
    assert [task.name for task in found.program.tasks] == ["nccl:all_reduce", "nccl:frobnicate"]


def test_times_stand_beside_the_program() -> None:
    timed = entry(
        "nccl:all_reduce",
        1,
        time_created_ns=1_000,
        time_discovered_started_ns=1_500,
        time_discovered_completed_ns=2_000,
    )
    found = load_bytes(recorder(timed), name="j.rank1.json")
    (time,) = found.times
    assert (time.rank, time.start_ns, time.end_ns) == (1, 1_500, 2_000)
    assert found.program is not None
    assert "2000" not in found.program.to_json()


@pytest.mark.parametrize(
    "path", shared_params("inputs/traces/**/*.fr.rank?.json") + shared_params("inputs/traces/nccl_fr_shape/*rank?.json")
)
def test_real_dumps_read_as_their_truth_says(path: Path) -> None:
    truth: dict[str, Any] = json.loads(
        path.with_suffix("").with_suffix(path.with_suffix("").suffix + ".truth.json").read_text()
    )
    found = load_path(path)
    assert found.program is not None
    assert found.diagnostics.ok
    assert found.program.diagnostics().ok
    named = {task.id: task for task in found.program.tasks}
    issued = [named[step[0]] for step in found.program.issue[0].steps]
    assert len(issued) == truth["n_entries"]
    assert [task.attributes["op_name"] for task in issued] == [item[2] for item in truth["order"]]
    groups = [task.attributes["trace.group"] or "0" for task in issued]
    assert groups == [item[0] for item in truth["order"]]
    over = Counter("trace.unfinished_ranks" not in task.attributes for task in issued)
    assert over[True] == sum(item["count"] for item in truth["ops"] if item["retired"])


def test_cut_dumps_are_never_a_surprise() -> None:
    data = kept("desync_deadlock")[3].read_bytes()
    for end in range(0, len(data), 37):
        found = load_bytes(data[:end], name="j.rank3.json")
        assert found.diagnostics.errors
