"""Every example notebook runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
RUN_HERE = [path for path in NOTEBOOKS if path.name != "jax_live.ipynb"]
"""The one on live JAX functions runs in tests/importers/jax, where JAX is."""


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    # The scripts of live views are part of what a cell shows: 7 MB each.
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    assert all(cell.get("execution_count") is None for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN_HERE, ids=lambda path: path.name)
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nbclient", "ipykernel"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install 'dtir[notebook]' nbclient")
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "app")]))
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert shown
    assert not [output for output in shown if output["output_type"] == "error"]
