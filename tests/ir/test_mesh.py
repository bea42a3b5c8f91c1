"""The logical mesh: row-major coordinates, and no memory for its ranks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.ir import LogicalMesh, MeshAxis, all_ranks
from tests.helpers.strategies import meshes


@given(meshes())
def test_ranks_are_row_major(mesh: LogicalMesh) -> None:
    grid = np.arange(mesh.size).reshape(mesh.shape)
    for rank in range(mesh.size):
        place = mesh.coordinates(rank)
        assert grid[place] == rank
        assert mesh.rank_of(place) == rank


def test_facts() -> None:
    mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4)))
    assert (mesh.size, mesh.shape, mesh.axis_names) == (8, (2, 4), ("dp", "tp"))
    assert mesh.axis_size("tp") == 4
    with pytest.raises(KeyError):
        mesh.axis_size("ep")


@given(meshes(), st.integers())
def test_ranks_outside_are_refused(mesh: LogicalMesh, rank: int) -> None:
    if 0 <= rank < mesh.size:
        mesh.coordinates(rank)
    else:
        with pytest.raises(ValueError, match="is outside a mesh of"):
            mesh.coordinates(rank)


def test_coordinates_outside_are_refused() -> None:
    mesh = LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4)))
    for bad in ((2, 0), (0, 4), (-1, 0)):
        with pytest.raises(ValueError, match="is outside axis"):
            mesh.rank_of(bad)
    with pytest.raises(ValueError, match="mesh has 2 axes, got 1 coordinates"):
        mesh.rank_of((0,))


def test_what_is_no_mesh() -> None:
    with pytest.raises(ValueError, match="uniquely named, got tp, tp"):
        LogicalMesh("m", (MeshAxis("tp", 2), MeshAxis("tp", 2)))
    with pytest.raises(TypeError, match=r"LogicalMesh\.axes must match"):
        LogicalMesh("m", ())
    with pytest.raises(TypeError, match=r"LogicalMesh\.name must match"):
        LogicalMesh("", (MeshAxis("tp", 2),))
    for size in (0, -1, True, 2.0):
        with pytest.raises(TypeError, match=r"MeshAxis\.size must match"):
            MeshAxis("tp", size)  # type: ignore[arg-type]


def test_two_thousand_million_ranks_cost_nothing() -> None:
    tracemalloc.start()
    try:
        mesh = LogicalMesh("m", (MeshAxis("dp", 2_000_000), MeshAxis("tp", 1_000)))
        assert mesh.size == 2_000_000_000
        assert mesh.coordinates(1_999_999_999) == (1_999_999, 999)
        everyone = all_ranks(mesh.size)
        assert len(everyone) == mesh.size
        assert 1_234_567_890 in everyone
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
