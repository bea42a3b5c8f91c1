"""How the bytes of a halo exchange grow with the ranks: two models over a periodic box, planned and counted.

Run it:  python examples/halo_scaling.py [-o scaling.svg]

Prints, for 1 to 8 ranks, the bytes that the exchanges of one evaluation move, as planned from the partition and as counted by the
plan that the executors follow, and writes a plot. Surface grows slower than volume: twice the ranks do not send twice as much.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dtir.execute.plan import make_plan
from dtir.ir.tasks import Reshard
from dtir.spec import SPEC_HALO
from dtir.spec.lower import ITEM_BYTES, lower
from dtir.spec.outline import lennard_jones, message_passing
from dtir.spec.partition import grid_for, spatial_partition
from dtir.spec.routes import exchange_routes
from dtir.spec.system import System

CUTOFF, LENGTH, LATTICE = 2.0, 17.0, 12


def atoms() -> System:
    """A disturbed lattice with vacancies."""
    rng = np.random.default_rng(0)
    points = np.stack(np.meshgrid(*[np.arange(LATTICE)] * 3, indexing="ij"), -1).reshape(-1, 3) * (LENGTH / LATTICE)
    kept = rng.random(len(points)) < 0.8
    positions = points[kept] + rng.normal(0, 0.05, (int(kept.sum()), 3))
    return System((LENGTH,) * 3, positions, rng.integers(1, 4, int(kept.sum())), CUTOFF, "fluid")


def exchanged_bytes(system: System, ranks: int, model: str) -> tuple[int, int]:
    """Bytes of all exchanges of one evaluation: planned from the partition, and counted in the executors' plan."""
    outline = lennard_jones(cutoff=CUTOFF) if model == "lennard_jones" else message_passing(cutoff=CUTOFF)
    cut = spatial_partition(system, grid_for(ranks, system.bins))
    program = lower(SPEC_HALO, cut, outline)
    exchanges = sum(isinstance(task.body, Reshard) for task in program.tasks)
    planned = exchanges * ITEM_BYTES * sum(exchange_routes(cut).values())
    plan = make_plan(program)
    steps = plan.value.main.steps if hasattr(plan, "value") else ()
    counted = sum(step.planned.total_bytes for step in steps if isinstance(step.task.body, Reshard))
    return planned, counted


def plot(rows: list[tuple[int, int, int]]) -> str:
    """The two curves as SVG."""
    width, height, left, top = 560, 340, 70, 20
    most = max(max(lj, mp) for _, lj, mp in rows) or 1
    inner_width, inner_height = width - left - 120, height - top - 50

    def place(ranks: int, size: int) -> str:
        return f"{left + (ranks - 1) / 7 * inner_width:.1f},{top + inner_height * (1 - size / most):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{left},{top}V{top + inner_height}H{left + inner_width}" fill="none" stroke="#444"/>',
    ]
    lines += [
        f'<text x="{left + (ranks - 1) / 7 * inner_width:.1f}" y="{top + inner_height + 18}" text-anchor="middle">{ranks}</text>'
        for ranks, _, _ in rows
    ]
    for part in range(5):
        y = top + inner_height * (1 - part / 4)
        lines.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{most * part / 4 / 1024:.0f} KiB</text>')
        lines.append(f'<path d="M{left},{y:.1f}h{inner_width}" stroke="#ddd"/>')
    for column, (name, colour) in enumerate((("Lennard-Jones", "#0072B2"), ("two layers", "#E69F00")), 1):
        points = " ".join(place(row[0], row[column]) for row in rows)
        x, y = place(rows[-1][0], rows[-1][column]).split(",")
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{float(x) + 8}" y="{float(y) + 4}">{name}</text>')
    lines.append(f'<text x="{left + inner_width / 2}" y="{height - 8}" text-anchor="middle">ranks</text></svg>')
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Print the table, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="where to write the plot (SVG)")
    options = parser.parse_args(arguments)
    system = atoms()
    print(f"{system.atoms} atoms in {' x '.join(map(str, system.bins))} bins of up to {system.slots}")
    print("ranks  domains    lennard_jones  message_passing   planned = counted")
    rows: list[tuple[int, int, int]] = []
    for ranks in range(1, 9):
        (lj, lj_counted), (mp, mp_counted) = (
            exchanged_bytes(system, ranks, name) for name in ("lennard_jones", "message_passing")
        )
        grid = " x ".join(map(str, grid_for(ranks, system.bins)))
        print(f"{ranks:5}  {grid:9}  {lj:13,}  {mp:15,}   {(lj, mp) == (lj_counted, mp_counted)}")
        rows.append((ranks, lj, mp))
    if options.output:
        options.output.write_text(plot(rows), encoding="utf-8")
        print(f"written {options.output}")


if __name__ == "__main__":
    main()
