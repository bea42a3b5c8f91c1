"""Everything here needs real MPI processes."""

from __future__ import annotations

import pytest

from tests.helpers.mpi_runs import why_not


@pytest.fixture(scope="session")
def _mpi() -> None:
    reason = why_not()
    if reason:
        pytest.skip(f"mpi: {reason}")


@pytest.fixture(autouse=True)
def _needs_mpi(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("mpi"):
        request.getfixturevalue("_mpi")
