"""Imported programs of real files against their known answers: collectives, layouts of parameters, structure."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dtir.analysis.summary import CollectiveRow, collective_rows
from dtir.importers.hlo import import_hlo
from dtir.importers.hlo.shapes import parse_shape
from dtir.ir.mesh import LogicalMesh
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Loop
from dtir.ir.values import DistributedValue
from tests.helpers.shared import shared_params
from tests.importers.hlo.hlo_files import fixture_paths, load, module_records, truth_path

KINDS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-permute": "collective_permute",
    "collective-broadcast": "broadcast",
    "ragged-all-to-all": "all_to_all",
}
REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "product", "and": "and", "or": "or"}


def _import(path: Path) -> DistributedTaskIR:
    file = load(path)
    assert file is not None
    found = import_hlo(file.text)
    assert [item.render() for item in found.diagnostics.errors] == []
    assert found.program is not None
    assert [item.render() for item in found.program.diagnostics()] == []
    return found.program


def _wanted(truth: dict[str, Any]) -> dict[str, Any]:
    """A truth entry in the terms of the program."""
    opcode = truth["opcode"].removesuffix("-start")
    size = sum(parse_shape(operand).size_bytes() for operand in truth["operands"])
    if opcode == "all-gather":
        size *= truth["group_size"]
    return {
        "kind": KINDS[opcode],
        "message_bytes": size,
        "executions": truth["executions"],
        "reduction": REDUCTIONS[truth["reducer"]] if "reducer" in truth else None,
        "groups": truth.get("replica_groups", truth.get("source_target_pairs")),
    }


def _found(row: CollectiveRow, wanted: dict[str, Any]) -> dict[str, Any]:
    groups: Any = [list(group) for group in row.groups or ()]
    if isinstance(wanted["groups"], dict):  # large meshes: only the first and last group are kept
        groups = {"first": groups[0], "last": groups[-1]}
    return {
        "kind": row.kind,
        "message_bytes": row.message_bytes,
        "executions": row.executions,
        "reduction": row.reduction,
        "groups": groups,
    }


def _check_collectives(path: Path) -> None:
    file = load(path)
    if file is None:
        pytest.skip("has no truth file")
    truth = file.truths[0]
    rows: defaultdict[str | None, list[CollectiveRow]] = defaultdict(list)
    total = 0
    for row in collective_rows(_import(path)):
        rows[row.source_name].append(row)
        total += 1
    known = [entry for entry in truth["collectives"] if not entry["opcode"].endswith("-done")]
    if not truth.get("collectives_truncated"):
        assert total == len(known)
    for entry in known:
        assert rows[entry["name"]], f"{entry['name']} is missing"
        row = rows[entry["name"]].pop(0)
        wanted = _wanted(entry)
        if wanted["groups"] == []:  # `{}` stands for everybody, which the truth files do not spell out
            assert row.group_count == 1
            wanted |= {"groups": _found(row, wanted)["groups"], "message_bytes": row.message_bytes}
        assert (entry["name"], _found(row, wanted)) == (entry["name"], wanted)


@pytest.mark.parametrize("path", fixture_paths(), ids=lambda path: path.name)
def test_collectives_of_fixtures(path: Path) -> None:
    _check_collectives(path)


@pytest.mark.parametrize("path", shared_params("inputs/hlo_*/**/*.hlo") + shared_params("inputs/hlo_*/**/*.hlo.gz"))
def test_collectives_of_shared_files(path: Path) -> None:
    _check_collectives(path)


@pytest.mark.parametrize("path", fixture_paths(), ids=lambda path: path.name)
def test_trip_counts_reach_the_program(path: Path) -> None:
    file = load(path)
    assert file is not None
    loops = {t.name: t.body.trip_count for t in _import(path).all_tasks() if isinstance(t.body, Loop)}
    assert loops == {w["name"]: w["trip_count"] for w in file.truths[0]["while_loops"]}


def _block(value: DistributedValue, mesh: LogicalMesh, rank: int) -> list[list[int]]:
    """The part of a value that one rank holds: [start, stop] per dim."""
    position = dict(zip(mesh.axis_names, mesh.coordinates(rank), strict=True))
    block: list[list[int]] = []
    for size, axes in zip(value.type.shape, value.sharding.dimension_axes, strict=True):
        assert isinstance(size, int)
        count, index = 1, 0
        for axis in axes:
            count *= mesh.axis_size(axis)
            index = index * mesh.axis_size(axis) + position[axis]
        width = -(-size // count)
        block.append([min(index * width, size), min((index + 1) * width, size)])
    return block


def _check_parameters(path: Path) -> None:
    truth = truth_path(path)
    known = json.loads(truth.read_text()) if truth is not None else {}
    if "device_slices" not in known:
        pytest.skip("has no device slices")
    program = _import(path)
    values = {value.id: value for value in program.values}
    order = known["mesh"]["device_ids"]
    slices = known["device_slices"]["in"]
    assert len(program.inputs) >= len(slices)
    for identifier, blocks in zip(program.inputs, slices, strict=False):
        value = values[identifier]
        assert not value.sharding.varying
        # A program speaks of logical partition ids; the device of each travels separately.
        found = {device: _block(value, program.mesh, order.index(int(device))) for device in blocks}
        assert found == blocks


@pytest.mark.parametrize("path", fixture_paths(), ids=lambda path: path.name)
def test_parameters_of_fixtures_are_split_as_jax_does(path: Path) -> None:
    _check_parameters(path)


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/cpu*/*.hlo"))
def test_parameters_of_shared_files_are_split_as_jax_does(path: Path) -> None:
    _check_parameters(path)


def test_public_modules_give_valid_programs_or_findings(shared_data: Path) -> None:
    programs = 0
    for record in module_records(shared_data):
        found = import_hlo(record["text"], name="m")
        assert (found.program is None) == (not found.diagnostics.ok)
        if found.program is not None:
            programs += 1
            assert [item.render() for item in found.program.diagnostics()] == [], f"{record['path']}:{record['line']}"
    assert programs > 900


@pytest.mark.parametrize("path", fixture_paths(), ids=lambda path: path.name)
def test_programs_survive_a_snapshot(path: Path) -> None:
    program = _import(path)
    assert DistributedTaskIR.require_from_json(program.to_json()) == program
