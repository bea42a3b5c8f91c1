"""Operators of a user's own: named on the command line, never by a file; known to every process of a run."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dtir.execute.archive import Archive
from dtir.ir.types import OperationName
from dtir.ops import OpModuleError, find_op, load_installed, load_op_module, loaded_op_modules, unregister_op
from dtir.ops import modules as op_modules
from tests.helpers.cli import Run, runner
from tests.helpers.mpi_runs import why_not
from tests.helpers.shared import ROOT

WARP = OperationName("mine", "warp")
OWN = str(ROOT / "tests" / "helpers" / "own_ops.py")

PROGRAM = """schema: dtir-program/1
name: warped
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[], [tp]]}
- {id: w, shape: [4, 8], dims: [[], [tp]]}
- {id: y, shape: [4, 8], dims: [[], []]}
tasks:
- {id: t1, kind: local, op: mine.warp, in: [x], out: [w], by: 3}
- {id: t2, kind: collective, coll: all_gather, in: [w], out: [y], axes: [tp], dim: 1}
inputs: [x]
outputs: [y]
"""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What a test loads is not there for the next one."""
    yield
    op_modules._loaded.clear()
    load_installed.cache_clear()
    if find_op(WARP) is not None:
        unregister_op(WARP)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "warped.yaml"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def outputs(path: Path) -> np.ndarray:
    return Archive.open(str(path)).read("out0")


def test_a_file_alone_leads_to_no_import(run: Run, program: Path) -> None:
    done = run("run", program)
    assert done.code == 2
    assert "mine.warp" in done.err
    assert "--op-module" in done.err


def test_operators_of_a_module_run(run: Run, program: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", in0=np.arange(32, dtype=np.float32).reshape(4, 8))
    done = run(
        "run", program, "--op-module", "tests.helpers.own_ops", "--inputs", tmp_path / "in.npz",
        "--outputs", tmp_path / "out.npz",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert np.array_equal(outputs(tmp_path / "out.npz"), np.arange(32).reshape(4, 8) ** 2 + 3)


@pytest.mark.mpi
def test_they_are_known_to_every_process(run: Run, program: Path, tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(f"mpi: {reason}")
    done = run("run", program, "--op-module", OWN, "--outputs", tmp_path / "one.npz")
    assert done.code == 0, done.err
    done = run("run", program, "--op-module", OWN, "--backend", "mpi", "-n", "2", "--outputs", tmp_path / "two.npz")
    assert done.code == 0, done.err
    assert "2 ranks on mpi" in done.out
    assert outputs(tmp_path / "one.npz").tobytes() == outputs(tmp_path / "two.npz").tobytes()
    assert loaded_op_modules() == (OWN,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has neither a tuple OPS"),
        ("OPS = 3", "is no tuple of"),
        ("OPS = (('mine', 'warp'),)", "no pair of a dialect and an OpDef"),
        ("import no_such_module_at_all", "cannot be loaded: ModuleNotFoundError"),
        ("raise RuntimeError('not today')", "cannot be loaded: RuntimeError: not today"),
        ("def f(:", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_module_that_has_none_is_refused(run: Run, program: Path, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ops.py"
    path.write_text(text)
    done = run("run", program, "--op-module", path)
    assert done.code == 2
    assert message in done.err
    assert "run.op_module" in done.err
    assert "Traceback" not in done.err
    assert not loaded_op_modules()


def test_a_module_that_is_not_there_is_refused(run: Run, program: Path, tmp_path: Path) -> None:
    assert "there is no module nowhere_to_be_found" in run("run", program, "--op-module", "nowhere_to_be_found").err
    assert "there is no file" in run("run", program, "--op-module", tmp_path / "absent.py").err


def test_a_module_may_register_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "by_itself.py"
    path.write_text(
        "from dtir.ops import register_op\nfrom tests.helpers.own_ops import OPS\n"
        "register_op(OPS[0][1], dialect=OPS[0][0])\n"
    )
    load_op_module(str(path))
    load_op_module(str(path))  # a second time is nothing new
    assert find_op(WARP) is not None
    with pytest.raises(OpModuleError, match="already defined"):
        load_op_module(OWN)


def test_installed_packages_say_so_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        importlib.metadata.EntryPoint("own", "tests.helpers.own_ops", "dtir.ops"),
        importlib.metadata.EntryPoint("broken", "tests.helpers.not_there", "dtir.ops"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == "dtir.ops" else [])
    monkeypatch.delitem(sys.modules, "tests.helpers.own_ops", raising=False)
    (problem,) = load_installed()
    assert "entry point broken" in problem
    assert find_op(WARP) is not None
    assert loaded_op_modules() == ("tests.helpers.own_ops",)
