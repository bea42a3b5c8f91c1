"""The shared real files: found beside the repository, or where DTIR_SHARED_DATA says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "DTIR_SHARED_DATA"


def shared_data_path() -> Path | None:
    """The folder of the shared files, or None when there is none.

    Raises:
        FileNotFoundError: DTIR_SHARED_DATA names a folder that does not exist; a mistyped path must not skip tests.
    """
    if named := os.environ.get(VARIABLE):
        path = Path(named)
        if not path.is_dir():
            raise FileNotFoundError(f"{VARIABLE}={named} is no folder")
        return path
    path = ROOT.parent / "shared" / "data"
    return path if path.is_dir() else None


def absent_reason() -> str:
    return f"the shared real files are absent (../shared/data beside the repository, or {VARIABLE})"


def shared_params(pattern: str) -> list[object]:
    """One pytest parameter per shared file that matches, its id the path below the folder; one that skips without files.

    >>> @pytest.mark.parametrize("path", shared_params("upstream/*.json"))  # doctest: +SKIP
    """
    root = shared_data_path()
    if root is None:
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=absent_reason()))]
    paths = sorted(root.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"no shared file matches {pattern}")
    return [pytest.param(path, id=str(path.relative_to(root))) for path in paths]
