"""Everything here needs a GPU that works; the reason to skip is what the probe says."""

from __future__ import annotations

import pytest

from dtir.execute import load_backend


@pytest.fixture(scope="session")
def _gpu() -> None:
    probe = load_backend("cupy").probe()
    if not probe.ok:
        pytest.skip(f"gpu: {probe.reason}")


@pytest.fixture(autouse=True)
def _needs_gpu(_gpu: None) -> None:
    """Skip without one."""
