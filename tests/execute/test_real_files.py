"""Real modules with known inputs and outputs: every one runs from its text and gives what JAX gave."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute import Archive, ExecutionError, Report, Request, Slab, run_program
from dtir.execute.assemble import Source
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.layouts import layouts_from
from dtir.execute.placement import Placement
from dtir.execute.values import rows
from dtir.importers.hlo.importer import import_hlo
from dtir.ir import DistributedTaskIR
from dtir.schema.diagnostics import DiagnosticError
from dtir.schema.result import Ok
from tests.helpers.running import hlo_program, plan_of, run_slabs
from tests.helpers.shared import shared_params

RELATIVE = 2e-5


def archive_of(path: Path) -> Path:
    """The arrays of a program; variants of a program share them."""
    name = re.sub(r"(__\w+)?\.\w+\.hlo$", ".io.npz", path.name)
    folders = (path.parent, path.parent.parent / "cpu8")
    return next((folder / name for folder in folders if (folder / name).exists()), path.with_name(name))


def run(path: Path, layouts: dict[int, Placement] | None = None) -> Report:
    program = hlo_program(path.read_text())
    found = run_program(program, Request(inputs=Archive.open(archive_of(path)), layouts=layouts or {}))
    assert isinstance(found, Ok), [item.render() for item in found.error]
    return found.value


def whole_program(path: Path) -> DistributedTaskIR:
    return hlo_program(path.with_name(path.name.replace(".spmd.", ".sharded.")).read_text())


def require_expected(report: Report, archive: Path) -> int:
    """Every output of the archive is there and agrees; gives how many there were."""
    arrays = report.arrays()
    with np.load(archive) as expected:
        names = [name for name in expected if name.startswith("out")]
        for name in names:
            wanted, found = expected[name], arrays[name]
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            if wanted.dtype.kind == "f":
                scale = max(np.abs(wanted).max(initial=0.0), 1e-30)
                assert np.abs(found - wanted).max(initial=0.0) <= RELATIVE * scale
            else:
                assert np.array_equal(found, wanted)
    return len(names)


def with_arrays(pattern: str) -> list[object]:
    """One case a file that has arrays; one that skips where the files are absent."""
    found: list[Any] = shared_params(pattern)
    return [item for item in found if item.values[0] is None or archive_of(item.values[0]).exists()]


SPMD = with_arrays("inputs/hlo_jax/*/*.spmd.hlo")


@pytest.mark.parametrize("path", SPMD)
def test_partitioned_module(path: Path) -> None:
    program = hlo_program(path.read_text())
    layouts = layouts_from(whole_program(path), plan_of(program)).or_raise()
    report = run(path, layouts)
    assert report.findings.ok
    count = require_expected(report, archive_of(path))
    assert count == len(report.outputs) or path.parent.name == "known_bugs"
    assert all(check.wrong == 0 for check in report.checks)


@pytest.mark.parametrize("path", SPMD)
def test_layouts_are_never_guessed_wrong(path: Path) -> None:
    """Without the module before partitioning: what is put together is right, what is not known is given rank by rank."""
    report = run(path)
    arrays = report.arrays()
    with np.load(archive_of(path)) as expected:
        for output in report.outputs:
            name = f"out{output.number}"
            if name in expected and output.source is not Source.UNKNOWN:
                wanted = expected[name]
                assert arrays[name].shape == wanted.shape
                assert np.allclose(arrays[name], wanted, rtol=1e-4, atol=RELATIVE * np.abs(wanted).max(initial=0.0))


@pytest.mark.parametrize(
    "path", [*with_arrays("inputs/hlo_jax/*/*.sharded.hlo"), *with_arrays("inputs/hlo_jax/*/*.pre.hlo")]
)
def test_module_before_partitioning(path: Path) -> None:
    """Whole values outside, parts of them inside `shard_map`."""
    archive = archive_of(path)
    report = run(path)
    assert report.findings.ok
    require_expected(report, archive)


@pytest.mark.parametrize("path", with_arrays("inputs/hlo_jax/cpu*/*.post.hlo"))
def test_optimised_module(path: Path) -> None:
    """Fusions, bitcasts between layouts, scheduled order."""
    archive = archive_of(path)
    program = hlo_program(path.read_text())
    spmd = path.with_name(path.name.replace(".post.", ".sharded."))
    layouts = layouts_from(hlo_program(spmd.read_text()), plan_of(program)).or_raise()
    require_expected(run(path, layouts), archive)


def known_modules() -> list[object]:
    (only,) = shared_params("inputs/hlo_public/executed/xla_test_modules_known_io.jsonl.gz")
    path: Path | None = only.values[0]  # type: ignore[attr-defined]
    if path is None:
        return [only]
    modules = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [pytest.param(module, id=f"{number}-{module['test']}") for number, module in enumerate(modules)]


def module_text(module: dict[str, Any]) -> str:
    """The text for the number of devices it was run on, as that run had it: with replicas for partitions where it took channels away."""
    head, _, rest = module["text"].partition("\n")
    ranks = module["n_devices"]
    head = re.sub(r",\s*(num_partitions|replica_count)=\d+", "", head)
    if module["id_space"].startswith("partition"):
        plain = f"{head}, num_partitions={ranks}\n{rest}"
        found = import_hlo(plain).program
        if found is not None and found.mesh.size == ranks and "replica-id()" not in rest:
            return plain
        rest = re.sub(r",\s*(channel_id=\d+|use_global_device_ids=(true|false))", "", rest)
        rest = rest.replace("partition-id()", "replica-id()")
    return f"{head}, replica_count={ranks}\n{rest}"


def stored(entry: dict[str, Any], dtype: str) -> np.ndarray:
    return np.asarray(entry["data"], numpy_dtype(dtype)).reshape(entry["shape"])


@pytest.mark.parametrize("module", known_modules())
def test_module_of_xlas_own_tests(module: dict[str, Any]) -> None:
    if module["test"] == "CollectiveOpsCseTest.NoCseGlobalDevice":
        # A gather in groups of one rank that is declared twice as large: what XLA gave was unwritten memory.
        with pytest.raises(
            DiagnosticError, match=r"all_gather of \[1, 8\] over 1 ranks gives \[1, 8\], declared \[2, 8\]"
        ):
            plan_of(hlo_program(module_text(module)))
        return
    plan = plan_of(hlo_program(module_text(module)))
    assert plan.ranks == module["n_devices"]
    ranks = tuple(range(plan.ranks))
    inputs = [
        Slab(ranks, np.stack([stored(one, plan.main.slots[slot].value.type.dtype) for one in per_rank]))
        for slot, per_rank in zip(plan.main.inputs, module["inputs"], strict=True)
    ]
    if "constant({...})" in module["text"]:
        # XLA puts numbers of its own in the place of values that are not in the text; we do not.
        with pytest.raises(ExecutionError, match="were left out"):
            run_slabs(plan, inputs)
        return
    for held, per_rank in zip(run_slabs(plan, inputs), module["outputs"], strict=True):
        for row, one in zip(rows(held), per_rank, strict=True):
            wanted = np.asarray(one["data"]).reshape(one["shape"])
            assert row.shape == wanted.shape
            assert np.allclose(np.asarray(row, np.float64), wanted.astype(np.float64), rtol=RELATIVE, atol=1e-6)
