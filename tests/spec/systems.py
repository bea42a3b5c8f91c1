"""Systems of atoms for tests: a disturbed lattice with vacancies, so that bins hold uneven numbers."""

from __future__ import annotations

import numpy as np

from dtir.spec.system import System

CUTOFF = 2.0


def fluid(
    seed: int = 0,
    *,
    lattice: int = 8,
    length: float = 10.5,
    filled: float = 0.75,
    stretch: tuple[float, ...] = (1, 1, 1),
) -> System:
    """Atoms of three kinds near the points of a lattice."""
    rng = np.random.default_rng(seed)
    cell = np.array([length, length, length]) * np.array(stretch)
    points = np.stack(np.meshgrid(*[np.arange(lattice)] * 3, indexing="ij"), -1).reshape(-1, 3) * (cell / lattice)
    kept = rng.random(len(points)) < filled
    positions = points[kept] + rng.normal(0, 0.05, (int(kept.sum()), 3))
    kinds = rng.integers(1, 4, len(positions))
    return System((cell[0], cell[1], cell[2]), positions, kinds, CUTOFF, "fluid")


def droplet() -> System:
    """Atoms in one corner of a long box: most domains own none."""
    rng = np.random.default_rng(3)
    points = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3) * 1.2 + 0.4
    return System(
        (16.5, 6.5, 6.5), points + rng.normal(0, 0.03, points.shape), rng.integers(1, 4, len(points)), CUTOFF, "droplet"
    )
