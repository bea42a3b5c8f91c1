"""Programs of declarations over real processes: the same bits as one process, and as many bytes as planned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dtir.execute import Report, Request, run_program
from dtir.execute.archive import Archive, pack
from dtir.importers.base import Source
from dtir.importers.spec_loader import lower_source
from dtir.schema.result import Ok
from dtir.spec import SPEC_HALO
from tests.mpi.test_wire import measurable
from tests.spec.systems import fluid

pytestmark = [pytest.mark.timeout(240)]


@pytest.mark.parametrize("model", ["lennard_jones", "message_passing"])
@pytest.mark.parametrize("processes", [2, 4])
def test_models_over_processes(model: str, processes: int, tmp_path: Path) -> None:
    system = fluid(6, lattice=7, length=9.0)
    said = {"cell": list(system.cell), "positions": system.positions.tolist(), "kinds": system.kinds.tolist()}
    (tmp_path / "system.json").write_text(json.dumps({**said, "cutoff": system.cutoff, "model": model, "ranks": 4}))
    text = json.dumps(SPEC_HALO.to_dict())
    lowered = lower_source(Source("spec.json", text.encode(), text), tmp_path / "system.json")
    program = lowered.imported.program
    assert program is not None
    (tmp_path / "atoms.npz").write_bytes(pack(dict(lowered.arrays)))

    def run(backend: str, algorithm: str) -> Report:
        many = processes if backend == "mpi" else None
        atoms = Archive.open(tmp_path / "atoms.npz")
        found = run_program(program, Request(backend=backend, processes=many, algorithm=algorithm, inputs=atoms))
        assert isinstance(found, Ok), [item.render() for item in found.error]
        return found.value

    alone, over = run("numpy", "ordered"), run("mpi", "ordered")
    for name, array in alone.arrays().items():
        np.testing.assert_array_equal(over.arrays()[name], array)
    assert all(check.wrong == 0 for check in over.checks)
    measurable()
    exchanges = [row for row in over.collectives if row.kind == "halo_exchange"]
    assert exchanges
    assert all(row.measured_bytes == row.planned_bytes for row in exchanges)
