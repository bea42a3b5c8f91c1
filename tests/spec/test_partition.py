"""Owners, ghosts and routes of atoms over a periodic box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute.moves import halo_moves
from dtir.execute.placement import Placement
from dtir.spec import SPEC_HALO, SpecError
from dtir.spec.lower import lower
from dtir.spec.outline import lennard_jones
from dtir.spec.partition import block_partition, even_sizes, grid_for, spatial_partition
from dtir.spec.routes import exchange_routes
from dtir.spec.system import System, read_system
from tests.spec.systems import CUTOFF, droplet, fluid


def near(system: System, one: int, width: float) -> np.ndarray:
    """Atoms within a distance of an atom, to the nearest image."""
    apart = system.positions - system.positions[one]
    apart -= np.array(system.cell) * np.round(apart / np.array(system.cell))
    return np.flatnonzero((apart**2).sum(axis=1) < width**2)


@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (5, 1, 1), (1, 3, 2)])
def test_every_neighbour_of_an_owned_atom_is_there(grid: tuple[int, int, int]) -> None:
    """Across faces, edges and corners, and across the ends of the box."""
    system = fluid()
    cut = spatial_partition(system, grid)
    assert sorted(np.concatenate(cut.layout.owned).tolist()) == list(range(system.atoms))
    for rank in range(cut.ranks):
        held = set(cut.layout.held(rank).tolist())
        for one in cut.layout.owned[rank][::7]:
            assert set(near(system, int(one), CUTOFF).tolist()) <= held


def test_edge_and_corner_neighbours_have_routes() -> None:
    cut = spatial_partition(fluid(), (2, 2, 2))
    assert {offset for _, offset in cut.neighbours[0]} == {
        tuple(-1 if axis in parts else 0 for axis in range(3))
        for parts in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    }
    assert set(cut.counts()) == {(a, b) for a in range(8) for b in range(8) if a != b}
    assert cut.exchange_bytes(24) == 24 * sum(len(ids) for ids in cut.layout.ghosts)


def test_a_rank_may_own_nothing() -> None:
    system = droplet()
    cut = spatial_partition(system, (4, 1, 1))
    assert 0 in cut.layout.sizes
    assert sum(cut.layout.sizes) == system.atoms


def test_blocks_are_even_and_borrow_nothing() -> None:
    system = fluid()
    cut = block_partition(system, 5)
    assert max(cut.layout.sizes) - min(cut.layout.sizes) <= 1
    assert cut.counts() == {}
    with pytest.raises(SpecError, match="0 ranks"):
        block_partition(system, 0)


@pytest.mark.parametrize(
    ("ranks", "bins", "grid"),
    [
        (1, (5, 5, 5), (1, 1, 1)),
        (8, (5, 5, 5), (2, 2, 2)),
        (4, (9, 3, 3), (4, 1, 1)),
        (6, (6, 4, 3), (3, 2, 1)),
    ],
)
def test_the_grid_with_the_least_surface(ranks: int, bins: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
    assert grid_for(ranks, bins) == grid


def test_sizes() -> None:
    assert even_sizes(7, 3) == (3, 2, 2)
    assert even_sizes(2, 3) == (1, 1, 0)
    cut = spatial_partition(fluid(), (2, 1, 1), sizes=[[4, 1], [5], [5]])
    assert cut.sizes[0] == (4, 1)


@pytest.mark.parametrize(
    ("arguments", "field", "said"),
    [
        ({"grid": (6, 1, 1)}, "grid", "6 domains along x, where the box has 5 bins"),
        ({"grid": (0, 1, 1)}, "grid", "three numbers from 1 on"),
        ({"grid": (2, 1)}, "grid", "three numbers from 1 on"),
        ({"grid": (2, 1, 1), "ghost_width": 0.0}, "ghost_width", "not a positive length"),
        (
            {"grid": (2, 1, 1), "ghost_width": 6.0},
            "ghost_width",
            "reaches over 3 bins along x, the smallest domain has 2",
        ),
        ({"grid": (2, 1, 1), "sizes": [[3, 3], [5], [5]]}, "sizes", "wanted are 2 that add up to 5"),
        ({"grid": (2, 1, 1), "sizes": [[5, 0], [5], [5]]}, "sizes", "wanted are 2 that add up to 5"),
    ],
)
def test_partitions_that_cannot_be(arguments: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        spatial_partition(fluid(), **arguments)
    assert caught.value.field == field


def test_more_ranks_than_bins() -> None:
    with pytest.raises(SpecError, match="7 ranks do not fit into 5 x 5 x 5 bins"):
        grid_for(7, (5, 5, 5))


@pytest.mark.parametrize("grid", [(2, 1, 1), (2, 2, 2), (1, 3, 1), (5, 1, 1)])
def test_planned_routes_are_what_the_executors_move(grid: tuple[int, int, int]) -> None:
    cut = spatial_partition(fluid(), grid)
    program = lower(SPEC_HALO, cut, lennard_jones(cutoff=CUTOFF))
    values = {value.name: value for value in program.values}
    source, target = (Placement.of(values[name], program.mesh, {}) for name in ("x", "x.halo"))
    ranks = range(program.mesh.size)
    moved: dict[tuple[int, int], int] = {}
    for move in halo_moves(source, ranks, target, ranks).moves:
        if move.source != move.destination:
            size = int(np.prod([stop - start for start, stop in move.source_box]))
            moved[move.source, move.destination] = moved.get((move.source, move.destination), 0) + size
    assert moved == exchange_routes(cut)


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"cell": [0, 9, 9]}, "cell", "three positive lengths"),
        ({"cell": [9, 9]}, "cell", "wanted are 3 numbers"),
        ({"cutoff": -1}, "cutoff", "not a positive length"),
        ({"cutoff": "2"}, "cutoff", "not a number"),
        ({"cutoff": 4}, "cutoff", "less than three cutoffs of 4"),
        ({"cutoff": 1e-9}, "cutoff", "bins, more than"),
        ({"kinds": [1, 2]}, "kinds", "2 kinds for 1 atoms"),
        ({"kinds": [0]}, "kinds", "0 stands for an empty slot"),
        ({"kinds": [1.5]}, "kinds", "no list of whole numbers"),
        ({"positions": [[1, 2]]}, "positions", "wanted are 3 numbers"),
        ({"positions": [[1, 2, None]]}, "positions", "wanted are 3 numbers"),
        ({"positions": [[1, 2, float("nan")]]}, "positions", "not finite"),
        ({"colour": 3}, "colour", "no field 'colour'"),
    ],
)
def test_systems_that_cannot_be(tmp_path: Path, change: dict[str, Any], field: str, said: str) -> None:
    good = {"cell": [9, 9, 9], "positions": [[1, 1, 1]], "kinds": [1], "cutoff": 2}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(good))
    assert read_system(path)[0].atoms == 1
    path.write_text(json.dumps({**good, **change}))
    with pytest.raises(SpecError, match=said) as caught:
        read_system(path)
    assert caught.value.field == field


def test_atoms_outside_the_box_are_folded_in() -> None:
    system = System((9.0, 9.0, 9.0), np.array([[-0.5, 9.5, 27.0]]), np.array([1]), 2.0)
    np.testing.assert_allclose(system.positions, [[8.5, 0.5, 0.0]])
    assert System((9.0, 9.0, 9.0), np.empty((0, 3)), np.empty(0, np.int64), 2.0).fields()["x"].shape == (4, 4, 4, 1)
