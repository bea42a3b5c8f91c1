"""Real files: what their truth says, the same collectives as the HLO of the same programs, the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.cli import main
from dtir.importers import load_bytes, load_path
from dtir.importers.stablehlo.importer import import_mlir
from dtir.importers.stablehlo.sdy import parse_mesh
from tests.helpers.shared import shared_params
from tests.importers.stablehlo.mlir_files import FIXTURES, collectives, fixture, program

RUN = (
    "sp_tp_fwd_shardmap",
    "cond_collective",
    "mlp_tp8_fwd",
    "all_to_all_zoo",
    "vocab_parallel_xent",
    "uneven_padding_gspmd",
    "dropout_rng_gspmd",
)


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/*/*.stablehlo.mlir"))
def test_own_programs(path: Path) -> None:
    found = load_path(path)
    assert [item.render() for item in found.diagnostics.errors] == []
    assert found.program is not None
    assert found.program.diagnostics().errors == ()
    stem = path.name.replace(".debuginfo", "").removesuffix(".stablehlo.mlir")
    truth_path = path.parent / f"{stem}.truth.json"
    truth: dict[str, Any] = json.loads(truth_path.read_text()) if truth_path.exists() else {}
    counted = dict(found.program.attributes["mlir.operations"])
    for name, count in truth.get("stablehlo_ops", {}).items():
        assert counted.get("stablehlo.custom_call" if name == "custom_call" else name, 0) == count
    before = path.parent / f"{stem}.pre.hlo"
    if before.exists():
        hlo = load_path(before).program
        assert hlo is not None
        assert collectives(found.program) == collectives(hlo)
        assert found.program.mesh.axes == hlo.mesh.axes


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/sdy_propagated/*.mlir"))
def test_propagated_programs(path: Path) -> None:
    truth = json.loads(path.with_suffix(".truth.json").read_text())
    (part,) = import_mlir(path.read_text()).parts
    assert dict(part.operations) == truth["ops"]
    assert part.diagnostics.errors == ()
    assert part.programs[0].program is not None


MESHES_OF_OTHER_FORMS = {
    ("shardy__test__lower_to_fragment_calls.mlir", 14),
    ("shardy__test__propagation_pipeline.mlir", 5),
}
"""Parts whose truth counts meshes that are no operation: of a topology, inside a sharding."""


@pytest.mark.parametrize("path", shared_params("inputs/hlo_public/mlir/*.mlir"))
def test_public_files(path: Path) -> None:
    truth = json.loads(Path(f"{path}.truth.json").read_text())["parts"]
    found = import_mlir(path.read_text()).parts
    assert len(found) == len(truth)
    for number, (part, wanted) in enumerate(zip(found, truth, strict=True)):
        errors = [item.render() for item in part.diagnostics.errors]
        if not wanted["ok"]:
            # Shardy refuses it for its fault, or jaxlib is too old or lacks the dialect: then it is read here.
            assert bool(errors) == wanted["expected_error"], errors
            continue
        assert errors == []
        counted = dict(part.operations)
        counted.pop("builtin.module", None)
        assert counted == wanted["ops"]
        if (path.name, number) not in MESHES_OF_OTHER_FORMS:
            assert dict(part.meshes) == {name: parse_mesh(text).text() for name, text in wanted["meshes"].items()}
        assert all(one.program is not None for one in part.programs) or not wanted["ops"].get("func.func")


@pytest.mark.parametrize("name", RUN)
def test_the_numbers_of_real_programs(shared_data: Path, tmp_path: Path, name: str) -> None:
    folder = shared_data / "inputs/hlo_jax/cpu8"
    out = tmp_path / "out.npz"
    arguments = [
        str(folder / f"{name}.stablehlo.mlir"),
        "--inputs",
        str(folder / f"{name}.io.npz"),
        "--outputs",
        str(out),
    ]
    assert main(["run", *arguments]) == 0
    with np.load(folder / f"{name}.io.npz") as wanted, np.load(out) as found:
        names = [key for key in wanted.files if key.startswith("out") and key[3:].isdigit()]
        assert names
        for key in names:
            np.testing.assert_allclose(found[key], wanted[key], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.mlir")), ids=lambda path: path.name.split(".")[0])
def test_the_command_line(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["show", "--format", "json", str(path)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["source"]["format"] == "stablehlo"
    for row in shown["collectives"]:
        assert row["source_name"].startswith("%")
        assert row["groups"]
    assert main(["verify", str(path)]) == 0
    assert main(["convert", str(path), "-o", str(tmp_path / "x.json")]) == 0
    again = load_path(tmp_path / "x.json").program
    assert again == program(path.read_text())


def test_several_programs_of_one_file() -> None:
    one = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n}\n"
    found = load_bytes(f"{one}// -----\n{one}{one.replace('main', 'g')}".encode(), name="two.mlir")
    assert [entry.label for entry in (found, *found.others)] == ["two.mlir#main:1", "two.mlir#main:5", "two.mlir#g"]
    assert all(entry.program is not None for entry in (found, *found.others))


def test_a_part_without_a_function_is_said_and_no_program() -> None:
    mesh, one = 'sdy.mesh @m = <["x"=2]>\n', "func.func @f() {\n  return\n}\n"
    found = load_bytes(f"{one}// -----\n{mesh}// -----\n{one}".encode(), name="x.mlir")
    assert len(found.others) == 1
    assert [(item.code, item.severity.value) for item in found.diagnostics] == [("mlir.no_function", "warning")]
    alone = load_bytes(mesh.encode(), name="x.mlir")
    assert (alone.program, [item.severity.value for item in alone.diagnostics]) == (None, ["error"])
    empty = load_bytes(f"{mesh}// -----\n{mesh}".encode(), name="x.mlir")
    assert empty.program is None
    assert [item.code for item in empty.diagnostics] == ["mlir.no_function"] * 2


def test_programs_have_stable_ids() -> None:
    text = fixture("halo_periodic_1d")
    assert program(text) == program(text)
