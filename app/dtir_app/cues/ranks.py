"""Ranks of the mesh as cells of a nested grid: filled, hollow, outlined, with a few words in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.frames.meshgrid import Grid, default_columns, mesh_grid

MOST_RANKS = 64
GAP = 8.0


@dataclass(frozen=True, slots=True)
class Cell:
    """How one rank looks: tones of fill and outline, words below its number."""

    fill: str = "plain"
    stroke: str = "muted"
    text: str = ""
    thick: float = 1.2
    dashed: bool = False
    hatch: str = ""
    says: str = ""


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the ranks stand: upper left corners, and the size of a cell."""

    places: dict[int, tuple[float, float]]
    width: float
    height: float
    right: float
    bottom: float

    def middle(self, rank: int) -> tuple[float, float]:
        x, y = self.places[rank]
        return x + self.width / 2, y + self.height / 2


def draw_ranks(
    case: Case,
    picture: Picture,
    x: float,
    y: float,
    look: Callable[[int], Cell],
    *,
    title: str = "",
    width: float = 62,
    height: float = 40,
    under: Callable[[Cells], None] | None = None,
) -> Cells:
    """Draw the mesh, the first ranks of a large one, and say what is left out; `under` draws below the cells."""
    mesh = case.store.mesh
    grid = mesh_grid(mesh, default_columns(mesh.axis_names), limit=MOST_RANKS)
    top, left = y, x
    if title:
        picture.text(x, y + 6, title, bold=True, size=12)
        top += 22
    across = _ticks(grid, "x")
    down = _ticks(grid, "y")
    if across:
        top += 16
    if down:
        left += 44
    step_x, step_y = width + GAP, height + GAP
    for text, place in across:
        picture.text(
            left + place * step_x + width / 2, top - 10, text, anchor="middle", tone="muted", size=10, most=step_x
        )
    for text, place in down:
        picture.text(left - 6, top + place * step_y + height / 2, text, anchor="end", tone="muted", size=10, most=44)
    stands = zip(grid.ranks.tolist(), grid.x.tolist(), grid.y.tolist(), strict=True)
    places = {rank: (left + gx * step_x, top + gy * step_y) for rank, gx, gy in stands}
    right, bottom = left + grid.width * step_x, top + grid.height * step_y
    cells = Cells(places, width, height, right, bottom)
    if under is not None:
        under(cells)
    for rank, (cx, cy) in places.items():
        cell = look(rank)
        ink = f"on-{cell.fill}" if cell.fill.startswith("axis-") else "text"
        picture.rect(
            cx, cy, width, height, fill=cell.fill, stroke=cell.stroke, thick=cell.thick, dashed=cell.dashed, round=4,
            hatch=cell.hatch, says=cell.says or f"rank {rank} {cell.text}",
        )  # fmt: skip
        if cell.hatch:
            picture.rect(cx + 6, cy + 5, width - 12, height - 10, fill="plain", stroke="none")
        picture.text(
            cx + width / 2, cy + height / 2 - (8 if cell.text else 0), str(rank), anchor="middle", bold=True, size=12,
            tone=ink,
        )  # fmt: skip
        if cell.text:
            picture.text(
                cx + width / 2, cy + height / 2 + 9, cell.text, anchor="middle", size=10, most=width - 6, tone=ink
            )
    if len(places) < mesh.size:
        picture.text(left, bottom + 4, f"{len(places)} of {mesh.size:,} ranks", tone="muted", size=10)
    return cells


def _ticks(grid: Grid, which: str) -> list[tuple[str, float]]:
    axes = grid.columns if which == "x" else grid.rows
    inner = axes[-1] if axes else ""
    return [(f"{name}={number}", place) for name, number, kind, place in grid.ticks if kind == which and name == inner]
