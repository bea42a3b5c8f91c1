"""A declaration on the command line: alone it says what it declares, with a system it is a program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dtir.cli import main
from dtir.spec import SPEC_HALO, DistributionSpec, HaloPolicy, MLIPSpec, OpAdapter
from tests.spec.systems import fluid


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.json"
    SPEC_HALO.with_adapters(OpAdapter("ns::spread", all_reduce_sum=[0])).save(path)
    return str(path)


@pytest.fixture
def system(tmp_path: Path) -> str:
    atoms = fluid(lattice=7, length=9.0)
    path = tmp_path / "system.json"
    said = {
        "cell": list(atoms.cell),
        "positions": atoms.positions.tolist(),
        "kinds": atoms.kinds.tolist(),
        "cutoff": atoms.cutoff,
        "model": "message_passing",
        "ranks": 4,
    }
    path.write_text(json.dumps(said))
    return str(path)


def test_a_declaration_alone(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", spec]) == 0
    text = capsys.readouterr().out
    assert "policy   halo (scatter_mode halo_correction, gather_mode halo_read): Shard(0), spatial partition" in text
    assert "ns::spread" in text
    assert "out0 all_reduce_sum" in text
    assert main(["show", spec, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["format"] == "mlipspec"
    assert result["fields"] == ["positions", "charges", "atomic_numbers"]
    assert result["adapters"] == [{"kind": "op", "target": "ns::spread", "state": "pending", "error": None}]
    assert MLIPSpec.from_dict(result["spec"]) == MLIPSpec.load(spec)


def test_what_wants_a_program_says_that_a_system_is_missing(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("verify", "run"):
        assert main([command, spec]) == 2
        assert "--system FILE" in capsys.readouterr().err


def test_with_a_system_it_is_shown_judged_run_and_saved(
    spec: str, system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", spec, "--system", system, "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["mesh"]["ranks"] == 4
    assert [row["kind"] for row in shown["collectives"]] == ["all_reduce"] * 7
    assert main(["verify", spec, "--system", system, "--judge", "static,value"]) == 0
    out, record = tmp_path / "out.npz", tmp_path / "run.json"
    assert main(["run", spec, "--system", system, "--outputs", str(out), "-o", str(record)]) == 0
    assert "atoms of" in capsys.readouterr().out
    with np.load(out) as arrays:
        assert arrays["out0"].shape == ()
        assert np.isfinite(arrays["out1"]).all()
    saved = tmp_path / "program.json"
    assert main(["convert", spec, "--system", system, "-o", str(saved)]) == 0
    capsys.readouterr()
    assert main(["show", str(saved), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == shown["digest"]


def test_wrong_declarations_are_found(system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.json"
    MLIPSpec(DistributionSpec(HaloPolicy(scatter_mode="local"))).save(path)
    assert main(["verify", str(path), "--system", system, "--judge", "static,value", "--format", "json"]) == 1
    codes = {item["code"] for item in json.loads(capsys.readouterr().out)["diagnostics"]}
    assert {"halo.thin", "value.mismatch"} <= codes


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"ghost_width": 9}, "spec.ghost_width", ["ghost_width"]),
        ({"ranks": 0}, "spec.partition", ["ranks"]),
        ({"grid": [2, 1, 1]}, "spec.partition", ["grid"]),
        ({"model": "water"}, "spec.lower", ["model"]),
        ({"cutoff": 8}, "spec.system", ["cutoff"]),
    ],
)
def test_systems_that_do_not_fit_name_the_field(
    spec: str, system: str, change: dict[str, object], code: str, path: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = json.loads(Path(system).read_text())
    Path(system).write_text(json.dumps({**said, **change}))
    assert main(["run", spec, "--system", system, "--format", "json"]) == 2
    (found,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (found["code"], found["path"]) == (code, path)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"version": 1, "core": {}}, "spec.version"),
        ({"version": 2, "core": {"policy": {"kind": "sharded"}}}, "spec.policy"),
        ({"version": 2, "core": {"policy": {"kind": "local"}}, "output_kinds": [["e", "per_atom"]]}, "spec.output"),
    ],
)
def test_declarations_that_are_none(
    given: dict[str, object], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(given))
    assert main(["show", str(path), "--format", "json"]) == 2
    assert [item["code"] for item in json.loads(capsys.readouterr().out)["diagnostics"]] == [code]


def test_a_system_that_is_not_there(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", spec, "--system", "absent.json"]) == 2
    assert "absent.json cannot be read" in capsys.readouterr().err
