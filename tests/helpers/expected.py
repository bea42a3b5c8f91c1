"""The upstream files and what is known of each, from the shared ``upstream/EXPECTED.json``."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.shared import absent_reason, shared_data_path


@cache
def _expected() -> dict[str, Any]:
    root = shared_data_path()
    return {} if root is None else json.loads((root / "upstream" / "EXPECTED.json").read_text(encoding="utf-8"))


def expected_params(section: str) -> list[object]:
    """One pytest parameter ``(name, facts)`` per file of a section; one that skips without files."""
    entries: dict[str, Any] = _expected().get(section, {})
    if not entries:
        return [pytest.param(None, None, id="absent", marks=pytest.mark.skip(reason=absent_reason()))]
    return [pytest.param(name, facts, id=name) for name, facts in entries.items()]


def upstream_text(root: Path, name: str) -> str:
    """The text of an upstream file, packed or not, without any change of line ends."""
    path = root / "upstream" / name
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{name}.gz").read_bytes())
    return data.decode("utf-8")
