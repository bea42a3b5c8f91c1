from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtir.importers import load_bytes, load_path
from dtir.importers.base import Imported
from dtir.importers.comm_debug.placements import mesh_of, placements_of, shape_of_text
from dtir.ir import Collective, LocalCompute, Symbol
from dtir.verify import verify
from tests.helpers.shared import shared_params

OPERATION = {
    "name": "aten.mm.default",
    "input_shape": [],
    "input_sharding": [],
    "device_mesh": "DeviceMesh((dp=2, tp=4), 'cpu', stride=(4, 1))",
}


def module(name: str, *children: Any, **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"fqn": name, "module_type": "class 'x'", "parameters": [], "children": list(children)}
    for phase in ("forward", "backward"):
        empty[f"collectives_{phase}"] = empty[f"operations_{phase}"] = []
    return {**empty, **more}


def load(tree: Any) -> Imported:
    return load_bytes(json.dumps(tree).encode(), name="job.commdebug.rank0.json")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(Shard(dim=0),)", [("split", 0)]),
        ("(S(1), R)", [("split", 1), ("replicated", None)]),
        ("(Replicate(), Partial(sum))", [("replicated", None), ("partial", None)]),
        ("(_StridedShard(dim=0, sf=8), Shard(dim=0))", [("split", 0), ("split", 0)]),
        ("(P(max),)", [("partial", None)]),
        ("(Elsewhere(dim=0),)", None),
        ("", None),
        ("os.system('x')", None),
    ],
)
def test_placements(text: str, found: list[tuple[str, int | None]] | None) -> None:
    read = placements_of(text)
    assert (None if read is None else [(item.kind, item.dim) for item in read]) == found


def test_meshes_and_shapes() -> None:
    assert mesh_of("DeviceMesh((tp=4), 'cuda', stride=(1,))") == {"tp": 4}
    assert mesh_of("DeviceMesh((tp=0), 'cuda')") is None
    assert shape_of_text("torch.Size([2, 8, 16])") == (2, 8, 16)
    assert shape_of_text("torch.Size([x])") is None


def test_counts_of_a_module_are_those_of_its_children_too() -> None:
    inner = module("Top.0", collectives_forward=[["c10d.allreduce_", 2]], operations_forward=[OPERATION])
    found = load(
        module(
            "Global",
            module("Top", inner, collectives_forward=[["c10d.allreduce_", 3]]),
            collectives_forward=[["c10d.allreduce_", 3]],
        )
    )
    assert found.program is not None
    assert found.program.diagnostics().ok
    called = [task.attributes["commdebug.module"] for task in found.program.tasks if isinstance(task.body, Collective)]
    assert called == ["Top", "Top.0", "Top.0"]
    assert dict(found.program.attributes["commdebug.counts"]) == {"c10d.allreduce_": 3}


def test_parameters_are_placed_on_the_mesh_that_operations_name() -> None:
    leaf = module(
        "M.w",
        parameters=[["weight", "(Replicate(), Shard(dim=1))"], ["bias", "(Shard(dim=0),)"]],
        operations_forward=[OPERATION],
    )
    found = load(module("Global", leaf))
    assert found.program is not None
    assert found.program.diagnostics().ok
    assert [(axis.name, axis.size) for axis in found.program.mesh.axes] == [("dp", 2), ("tp", 4)]
    weight, bias = found.program.values
    assert (weight.sharding.dimension_axes, weight.sharding.replicated_axes) == (((), ("tp",)), ("dp",))
    assert all(isinstance(extent, Symbol) for extent in weight.type.shape)
    assert bias.sharding.varying == ("dp", "tp")
    assert "commdebug.placements" in [item.code for item in found.diagnostics]


def test_backward_runs_against_the_order_of_the_tree() -> None:
    children = [module(f"M.{index}", collectives_backward=[["c10d.allreduce_", 1]]) for index in range(2)]
    found = load(module("Global", *children, collectives_backward=[["c10d.allreduce_", 2]]))
    assert found.program is not None
    assert [task.attributes["commdebug.module"] for task in found.program.tasks] == ["M.1", "M.0"]


def test_absurd_counts_are_left_out() -> None:
    counts = [
        ["c10d.allreduce_", 10**12],
        ["c10d.allreduce_", -1],
        ["c10d.frobnicate_", 2],
        "x",
        ["c10d.broadcast_", 1],
    ]
    found = load(module("Global", collectives_forward=counts))
    assert found.program is not None
    assert [str(task.operation) for task in found.program.tasks] == ["commdebug.broadcast"]
    assert {"commdebug.malformed", "commdebug.kind_unknown"} <= {item.code for item in found.diagnostics}


@pytest.mark.parametrize("path", shared_params("inputs/traces/**/*.commdebug.rank0.json"))
def test_real_trees_count_as_their_truth_says(path: Path) -> None:
    truth: dict[str, Any] = json.loads(
        path.with_name(path.name.replace(".commdebug.", ".commdebug_counts.")).read_text()
    )
    found = load_path(path)
    assert found.program is not None
    assert found.diagnostics.ok
    assert verify(found.program).ok
    strip = {
        name.removeprefix("_"): count for name, count in dict(found.program.attributes["commdebug.counts"]).items()
    }
    assert (
        sum(strip.values()) == truth["total"] == sum(isinstance(task.body, Collective) for task in found.program.tasks)
    )
    assert strip == {name.removeprefix("_"): count for name, count in truth["counts"].items()}
    assert any(isinstance(task.body, LocalCompute) for task in found.program.tasks)
