"""Ranks of an N-D mesh on a nested grid: some axes run along columns, the others along rows, outer axes with wider gaps.

>>> from dtir.ir.mesh import MeshAxis
>>> grid = mesh_grid(LogicalMesh("m", (MeshAxis("dp", 2), MeshAxis("tp", 4))), default_columns(("dp", "tp")))
>>> grid.x.tolist()[:5], grid.y.tolist()[:5]
([0.0, 1.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtir.ir.mesh import LogicalMesh, MeshAxis

CELL_LIMIT = 4096
"""Ranks on screen at once."""

GAP = 0.45


@dataclass(frozen=True, slots=True)
class Grid:
    """The shown ranks and where they stand.

    Args:
        ranks: rank numbers, ascending.
        x, y: cell centres, in cells; y grows downwards.
        width, height: extent of the grid.
        fixed: axes of which only one coordinate is shown, with that coordinate.
        cut: axes of which only the first coordinates are shown, with how many.
        columns, rows: axes along columns and rows, outermost first.
        ticks: labels of coordinates: axis name, coordinate, ``x`` or ``y``, place.
    """

    ranks: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    width: float
    height: float
    fixed: Mapping[str, int]
    cut: Mapping[str, int]
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    ticks: tuple[tuple[str, int, str, float], ...]


def default_columns(axes: Sequence[str]) -> frozenset[str]:
    """The axes that run along columns unless a person says otherwise: the last, the third last, ..."""
    return frozenset(axes[position] for position in range(len(axes) - 1, -1, -2))


def shown_part(mesh: LogicalMesh, at: Mapping[str, int], limit: int) -> tuple[dict[str, int], dict[str, int]]:
    """Which axes are shown at one coordinate only, and which in part, so that at most `limit` ranks are shown.

    The outermost axes are fixed first; an axis that alone is larger than the limit is cut.
    """
    fixed: dict[str, int] = {}
    cut: dict[str, int] = {}
    size = mesh.size
    for axis in mesh.axes:
        if size <= limit:
            break
        inner = size // axis.size
        if inner >= limit or inner * 2 > limit:
            fixed[axis.name] = min(max(0, at.get(axis.name, 0)), axis.size - 1)
            size = inner
        else:
            cut[axis.name] = max(1, limit // inner)
            size = cut[axis.name] * inner
    return fixed, cut


def _places(axes: Sequence[tuple[MeshAxis, int]]) -> tuple[list[tuple[str, float]], float]:
    """Distance of one step of each axis, outermost first, and the extent of all."""
    steps: list[tuple[str, float]] = []
    extent = 1.0
    gap = 0.0
    for axis, shown in reversed(axes):
        step = extent + gap
        steps.append((axis.name, step))
        extent += step * (shown - 1)
        gap = GAP if gap == 0.0 else gap * 1.6
    return steps[::-1], extent


def mesh_grid(
    mesh: LogicalMesh, columns: Collection[str], *, at: Mapping[str, int] | None = None, limit: int = CELL_LIMIT
) -> Grid:
    """Place the ranks of a mesh.

    Args:
        mesh: the mesh.
        columns: axes that run along columns.
        at: the coordinate to show of axes that are shown at one coordinate only.
        limit: how many ranks are shown at most.
    """
    fixed, cut = shown_part(mesh, at or {}, limit)
    free = [(axis, cut.get(axis.name, axis.size)) for axis in mesh.axes if axis.name not in fixed]
    across = [item for item in free if item[0].name in columns]
    down = [item for item in free if item[0].name not in columns]
    x_steps, width = _places(across)
    y_steps, height = _places(down)
    step = {name: (distance, 0) for name, distance in x_steps} | {name: (distance, 1) for name, distance in y_steps}
    ranks = np.zeros(1, dtype=np.int64)
    place = np.zeros((2, 1))
    stride = mesh.size
    for axis in mesh.axes:
        stride //= axis.size
        if axis.name in fixed:
            ranks = ranks + fixed[axis.name] * stride
            continue
        coordinates = np.arange(cut.get(axis.name, axis.size))
        distance, direction = step[axis.name]
        ranks = (ranks[:, None] + coordinates * stride).ravel()
        grown = np.repeat(place, len(coordinates), axis=1)
        grown[direction] += np.tile(coordinates * distance, place.shape[1])
        place = grown
    ticks = (*_ticks(across, x_steps, "x"), *_ticks(down, y_steps, "y"))
    return Grid(
        ranks,
        place[0],
        place[1],
        width,
        height,
        fixed,
        cut,
        tuple(axis.name for axis, _ in across),
        tuple(axis.name for axis, _ in down),
        ticks,
    )


def _ticks(
    axes: Sequence[tuple[MeshAxis, int]], steps: Sequence[tuple[str, float]], which: str
) -> list[tuple[str, int, str, float]]:
    """Labels of the innermost axis (once in every outer place) and, where there is one, of the next axis out."""
    made: list[tuple[str, int, str, float]] = []
    outer = [0.0]
    for position, ((axis, shown), (_, distance)) in enumerate(zip(axes, steps, strict=True)):
        extent = sum(
            step * (count - 1)
            for (_, count), (_, step) in zip(axes[position + 1 :], steps[position + 1 :], strict=True)
        )
        if position >= len(axes) - 2 and len(outer) * shown <= 128:
            made.extend(
                (axis.name, coordinate, which, start + coordinate * distance + (extent / 2))
                for start in outer
                for coordinate in range(shown)
            )
        outer = [start + coordinate * distance for start in outer for coordinate in range(shown)][: CELL_LIMIT + 1]
    return made
