from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers import load_bytes, load_path
from dtir.importers.base import Imported
from dtir.importers.sharding_table.specs import spec_of_json, spec_of_text
from dtir.ir import ValueRole
from dtir.verify import verify
from tests.helpers.shared import shared_params

MESH = {"axis_names": ["fsdp", "tensor"], "shape": {"fsdp": 4, "tensor": 2}}


def load(**entries: Any) -> Imported:
    return load_bytes(json.dumps(entries).encode(), name="m__named_shardings.json")


@given(
    st.lists(
        st.one_of(st.none(), st.sampled_from(["a", "b"]), st.lists(st.sampled_from(["c", "d", "e"]), max_size=3)),
        max_size=5,
    )
)
def test_a_spec_is_the_same_as_json_and_as_text(spec: list[Any]) -> None:
    text = f"P({', '.join(repr(tuple(item) if isinstance(item, list) else item) for item in spec)})"
    assert spec_of_text(text) == spec_of_json(spec)


@pytest.mark.parametrize(
    "text", ["P(", "P(x)", "P(('a', b))", "Q('a')", "P('a' 'b')", "__import__('os')", "P(((('a'))))", "", "P('')" * 2]
)
def test_other_texts_are_no_specs(text: str) -> None:
    assert spec_of_text(text) is None


def test_a_named_table_is_a_mesh_and_values() -> None:
    found = load(
        **{
            ".step": {"mesh": MESH, "partition_spec": [], "shape": []},
            ".params/['w']/['kernel']": {"mesh": MESH, "partition_spec": [["fsdp", "tensor"], None], "shape": [16, 4]},
            ".opt_state/[0]/.mu": {"mesh": MESH, "partition_spec": [None, "tensor"], "shape": [16, 4]},
        }
    )
    assert found.program is not None
    assert found.diagnostics.ok
    assert verify(found.program).ok
    assert [(axis.name, axis.size) for axis in found.program.mesh.axes] == [("fsdp", 4), ("tensor", 2)]
    step, weight, moment = found.program.values
    assert (step.sharding.replicated_axes, step.role) == (("fsdp", "tensor"), ValueRole.STATE)
    assert (weight.name, weight.sharding.dimension_axes, weight.role) == (
        "params.w.kernel",
        (("fsdp", "tensor"), ()),
        ValueRole.PARAMETER,
    )
    assert (moment.sharding.dimension_axes, moment.sharding.replicated_axes) == (((), ("tensor",)), ("fsdp",))
    assert moment.role is ValueRole.OPTIMIZER_STATE


def test_what_is_no_entry_is_left_out_and_named() -> None:
    good = {"mesh": MESH, "partition_spec": ["fsdp"], "shape": [8]}
    found = load(good=good, long={**good, "partition_spec": ["fsdp", "tensor"]}, none={"shape": [8]}, odd=3)
    assert found.program is not None
    (item,) = found.diagnostics.of_code("shardings.malformed")
    assert item.message.startswith("3 entries")
    assert [value.name for value in found.program.values] == ["good"]


def test_an_axis_that_stands_twice_is_kept_once() -> None:
    found = load(x={"mesh": MESH, "partition_spec": ["fsdp", ["tensor", "fsdp"]], "shape": [8, 8]})
    assert found.program is not None
    assert found.program.diagnostics().ok
    assert found.program.values[0].sharding.dimension_axes == (("fsdp",), ("tensor",))
    assert "shardings.axis_twice" in [item.code for item in found.diagnostics]


def test_tables_without_a_mesh_say_that_sizes_are_not_known() -> None:
    entry = {"x/q: bfloat16[8,4]": {"logic_axes": "('b', 'e')", "PartitionSpec": "P(('fsdp', 'expert'), None)"}}
    found = load_bytes(
        json.dumps({"Activation Sharding Dump": [entry, entry]}).encode(), name="m__input_shardings.json"
    )
    assert found.program is not None
    assert [(value.name, value.type.dtype) for value in found.program.values] == [("x.q", "bf16"), ("x.q.1", "bf16")]
    assert "shardings.sizes" in [item.code for item in found.diagnostics]


@pytest.mark.parametrize("size", [0, -4, "x", 2**60, True])
def test_absurd_mesh_sizes_are_no_surprise(size: Any) -> None:
    mesh = {"axis_names": ["fsdp"], "shape": {"fsdp": size}}
    found = load(x={"mesh": mesh, "partition_spec": ["fsdp"], "shape": [8]})
    assert found.program is not None or found.diagnostics.errors


@pytest.mark.parametrize("path", shared_params("inputs/specs/maxtext/*_shardings.json"))
def test_real_tables_read_as_their_truth_says(path: Path) -> None:
    truth: dict[str, Any] = json.loads(path.with_name(path.stem + ".truth.json").read_text())
    found = load_path(path)
    assert found.program is not None
    assert found.diagnostics.ok
    assert found.program.diagnostics().ok
    values = found.program.values
    wanted = truth["n"]
    assert len(values) == (wanted if isinstance(wanted, int) else sum(wanted.values()))
    if "mesh" in truth:
        assert {axis.name: axis.size for axis in found.program.mesh.axes} == truth["mesh"]
        replicated = [value for value in values if not value.sharding.split_axes]
        assert len(replicated) == truth["fully_replicated"]
        assert (
            sum(2 * math.prod(int(str(extent)) for extent in value.type.shape) for value in values)
            == truth["bytes_bf16"]
        )
        assert bool(verify(found.program).of_code("sharding.uneven")) == bool(truth["uneven"])
