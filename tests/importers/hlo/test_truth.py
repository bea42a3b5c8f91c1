"""Real files against their known answers: computations, instructions, collectives, loops, parameters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dtir.importers.hlo.attributes import Pairs
from dtir.importers.hlo.control import Control
from dtir.importers.hlo.devices import base_opcode
from dtir.importers.hlo.frontend import analyse_module, analyse_text
from dtir.importers.hlo.groups import ExplicitGroups, IotaGroups, MeshGroups, expand
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.reader import read_text
from dtir.importers.hlo.sugar import desugar
from dtir.importers.hlo.syntax import HloModule
from tests.helpers.shared import shared_params
from tests.importers.hlo.hlo_files import COLLECTIVES, fixture_paths, load, module_records

ASSUMED_START = {"thunk_coverage__cpu.hlo"}
"""Files whose truth assumes that a counter starts at 0 although it is a parameter of the program."""


def _collectives(module: HloModule, control: Control) -> dict[tuple[str, str], dict[str, Any]]:
    computations = module.by_name()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for computation in module.computations:
        if control.executions[computation.name] == 0:
            continue
        scope = {i.name: i for i in computation.instructions}
        for i in computation.instructions:
            if base_opcode(i.opcode).removesuffix("-done") not in COLLECTIVES:
                continue
            groups = i.attributes.get("replica_groups")
            pairs = i.attributes.get("source_target_pairs")
            dims = i.ints("dimensions")
            reducer = i.names("to_apply")
            listed = isinstance(groups, (ExplicitGroups, IotaGroups, MeshGroups))
            found[computation.name, i.name] = {
                "opcode": i.opcode,
                "result": i.shape.text(),
                "operands": [scope[name].shape.text() for name in i.operands],
                "bytes_in": sum(scope[name].shape.size_bytes() for name in i.operands),
                "bytes_out": i.shape.size_bytes(),
                "executions": control.executions[computation.name],
                "channel_id": i.integer("channel_id"),
                "use_global_device_ids": i.flag("use_global_device_ids") or None,
                "replica_groups": [list(group) for group in expand(groups)] if listed else [],
                "source_target_pairs": [list(pair) for pair in pairs.pairs] if isinstance(pairs, Pairs) else None,
                "dimensions": list(dims) if dims is not None else None,
                "reducer": computations[reducer[0]].root.opcode if reducer else None,
            }
    return found


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    differences: list[str] = []
    for key, value in found.items():
        known = wanted.get(key)
        if key == "replica_groups":
            known = known or []
            if isinstance(known, dict):  # large meshes: only the first and last group are kept
                value = {"first": value[0], "last": value[-1]}
        if value != known:
            differences.append(f"{wanted['name']}.{key}: {value} != {known}")
    return differences


def _check(path: Path) -> None:
    file = load(path)
    if file is None:
        pytest.skip("has no truth file")
    read = read_text(file.text)
    assert read.problems == ()
    assert len(read.modules) == len(file.truths)
    for plain, truth in zip(read.modules, file.truths, strict=True):
        problems = Problems(file.text)
        module = desugar(plain, problems)
        analysed = analyse_module(plain, problems)
        assert problems.items == []
        assert analysed is not None
        control = analysed.control
        assert len(module.computations) == truth["n_computations"]
        opcodes = Counter(i.opcode for c in module.computations for i in c.instructions)
        assert opcodes == truth["opcode_counts"]
        assert opcodes.total() == truth["n_instructions"]
        assert module.entry.name == truth["entry"]
        header = truth["header"]
        assert (module.name, module.is_scheduled) == (header["name"], header["is_scheduled"])
        assert (module.num_partitions or 1, module.replica_count or 1) == (
            header["num_partitions"],
            header["replica_count"],
        )
        assert module.entry.root.shape.text() == truth["entry_root"]
        parameters = [(p.number, p.shape.text(), p.shape.size_bytes()) for p in module.entry.parameters()]
        known = [(p["number"], p["shape"], p["bytes"]) for p in truth["entry_parameters"]]
        assert parameters[: len(known)] == known
        loops = {
            (c.name, i.name): control.trips(c.name, i.name)
            for c in analysed.reachable
            for i in c.instructions
            if i.opcode == "while"
        }
        if path.name not in ASSUMED_START:
            assert loops == {(w["computation"], w["name"]): w["trip_count"] for w in truth["while_loops"]}
        collectives = _collectives(module, control)
        wanted = {(w["computation"], w["name"]): w for w in truth["collectives"]}
        if not truth.get("collectives_truncated"):
            assert collectives.keys() == wanted.keys()
        assert [d for key, w in wanted.items() for d in _differences(collectives[key], w)] == []
        counts = Counter(found["opcode"] for found in collectives.values())
        assert counts == truth["collective_counts_static"]


@pytest.mark.parametrize("path", fixture_paths(), ids=lambda path: path.name)
def test_fixtures(path: Path) -> None:
    _check(path)


@pytest.mark.parametrize("path", shared_params("inputs/hlo_*/**/*.hlo") + shared_params("inputs/hlo_*/**/*.hlo.gz"))
def test_shared_files(path: Path) -> None:
    _check(path)


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/known_bugs/passes/*.txt"))
def test_pass_dumps_read(path: Path) -> None:
    analysed = analyse_text(path.read_text())
    assert analysed.problems == ()
    assert analysed.module is not None


def test_public_modules_read_or_say_why(shared_data: Path) -> None:
    unread: list[str] = []
    records = module_records(shared_data)
    assert len(records) > 900
    for record in records:
        analysed = analyse_text(record["text"])
        lines = record["text"].count("\n") + 1
        assert all(1 <= problem.line <= lines and problem.column >= 1 for problem in analysed.problems)
        read = read_text(record["text"])
        if record["jaxlib_parse"] == "ok":
            if not read.ok:
                unread.append(f"{record['path']}:{record['line']}: {read.problems[0].render()}")
                continue
            module = desugar(read.modules[0], Problems(record["text"]))
            assert sum(len(c.instructions) for c in module.computations) == record["n_instructions"]
        else:
            assert analysed.module is not None or analysed.problems
    assert unread == []
