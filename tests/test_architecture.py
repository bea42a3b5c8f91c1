"""Imports go one way, and the core loads no server, no plotting and no back end. Each check is shown to be able to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.shared import ROOT

HEAVY = ("panel", "bokeh", "holoviews", "param", "tornado", "cupy", "mpi4py", "jax", "torch", "pandas", "matplotlib")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter over the packages in a folder, with its contracts of pyproject.toml."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    # The folder comes first on the path: it must win over an installed copy.
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'app'}"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_layers() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("dtir", "app"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("dtir/schema/errors.py", "from dtir.ir.ids import NodeId", "imports go one way"),
        ("dtir/analysis/summary.py", "import bokeh.plotting", "dtir is headless"),
        ("dtir/ir/graph_.py", "def f():\n    import cupy", "back ends stay in the module that needs them"),
        ("dtir/newlayer/__init__.py", "", "imports go one way"),
        ("dtir/cli/show.py", "from dtir_app.serve import serve", "dtir is headless"),
        ("app/dtir_app/frames/extra_.py", "import bokeh.models", "frames draw nothing"),
        ("app/dtir_app/views/extra_.py", "from dtir.ir import NodeId", "views know no IR"),
    ],
)
def test_a_forbidden_import_is_found(copy: Path, file: str, line: str, said: str) -> None:
    path = copy / file
    path.parent.mkdir(exist_ok=True)
    old = path.read_text() if path.exists() else '"""New."""\n'
    path.write_text(f"{old}\n{line}\n")
    done = lint_imports(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout


def loaded(statement: str) -> set[str]:
    """The heavy packages that a statement loads in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module", ["dtir", "dtir.cli.arguments", "dtir.importers", "dtir.explain", "dtir.analysis.summary"]
)
def test_the_core_loads_nothing_heavy(module: str) -> None:
    assert loaded(f"import {module}") == set()


def test_what_is_heavy_would_be_seen() -> None:
    assert loaded("import param") == {"param"}


def test_reading_every_layer_loads_nothing_heavy() -> None:
    packages = sorted(
        path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in (ROOT / "dtir").rglob("__init__.py")
    )
    assert loaded("\n".join(f"import {name}" for name in packages)) == set()
