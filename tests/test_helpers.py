"""The helpers that decide whether tests run at all: real files, a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import chromium
from tests.helpers.chromium import NAMES, NO_INSTALL, VARIABLE, NoBrowser, find_chromium, launch_args, require_chromium
from tests.helpers.shared import ROOT, shared_data_path, shared_params


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a browser."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv(NO_INSTALL, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_a_browser_is_looked_for_in_this_order(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_chromium(str(bare / "own")) is None
    own = executable(bare / "own")
    assert find_chromium(str(own)) == own
    on_path = executable(bare / "bin" / NAMES[-1])
    assert find_chromium(str(own)) == on_path
    named = executable(bare / "named")
    monkeypatch.setenv(VARIABLE, str(named))
    assert find_chromium(str(own)) == named
    monkeypatch.setenv(VARIABLE, str(bare / "mistyped"))
    with pytest.raises(NoBrowser, match="is no file"):
        find_chromium()


def test_installers_are_tried_until_one_brings_a_browser(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0, raising=False)
    executable(bare / "bin" / "apt-get")
    ran: list[str] = []

    def run(*command: str) -> str | None:
        ran.append(" ".join(command[-2:]))
        if command[0] == "apt-get" and "install" in command:
            executable(bare / "bin" / "chromium")
            return None
        return f"{command[0]} failed"

    assert require_chromium(None, run) == bare / "bin" / "chromium"
    assert ran == ["install chromium", "-qq update", "chromium fonts-dejavu-core"]


def test_without_a_browser_the_reasons_are_given(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoBrowser, match="no network"):
        require_chromium(None, lambda *command: "no network")
    monkeypatch.setenv(NO_INSTALL, "1")
    with pytest.raises(NoBrowser, match="forbids"):
        require_chromium(None, lambda *command: pytest.fail("it was run"))


def test_only_root_goes_without_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0, raising=False)
    assert "--no-sandbox" in launch_args()
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 1000, raising=False)
    assert "--no-sandbox" not in launch_args()


def test_a_mistyped_folder_of_real_files_does_not_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTIR_SHARED_DATA", str(tmp_path / "no"))
    with pytest.raises(FileNotFoundError, match="is no folder"):
        shared_data_path()
    monkeypatch.setenv("DTIR_SHARED_DATA", str(tmp_path))
    assert shared_data_path() == tmp_path
    with pytest.raises(FileNotFoundError, match="no shared file matches"):
        shared_params("*.hlo")


def test_the_root_is_that_of_the_repository() -> None:
    assert (ROOT / "pyproject.toml").is_file()
