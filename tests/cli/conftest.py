"""Fixtures of the command line tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli import Run, runner
from tests.helpers.programs import program


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in this process."""
    return runner(capsys, monkeypatch)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A small valid program as a native snapshot."""
    path = tmp_path / "demo.json"
    path.write_text(program().to_json(), encoding="utf-8")
    return path
