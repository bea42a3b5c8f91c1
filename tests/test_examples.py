"""Every example runs, as the program that a reader would start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", path], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_forgotten_reduction_is_found_and_the_mended_layer_is_clean() -> None:
    path = next(path for path in EXAMPLES if path.name == "forgotten_all_reduce.py")
    lines = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "[partial.dropped]" in lines
    assert lines.endswith("mended: ok\n")
