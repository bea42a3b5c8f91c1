"""The rows of the timeline: classes of ranks that do the same, opened to single ranks, a page of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import RankRange
from dtir_app.frames.lanes import Lane
from dtir_app.measuring import Measured
from dtir_app.planning import ClassPlan, Planned
from dtir_app.text import plural, ranks_text

ROWS = 16
COMPUTE, COMMUNICATION = 0, 1
STREAMS = ("compute", "communication")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: one rank, or several that do the same.

    Args:
        key: ``c3`` for a class, ``c3r17`` for a rank of it.
        rank: the rank whose bars are drawn.
        size: ranks that the row stands for.
        label, note: its name, and what more there is to say.
        opened: whether its ranks follow as rows of their own; None where there is nothing to open.
        planned: the plan of the class; None without a plan.
    """

    key: str
    rank: int
    size: int
    label: str
    note: str
    opened: bool | None
    planned: ClassPlan | None

    def lane(self, side: str, stream: int, run: Measured | None) -> Lane | None:
        """A lane of the row; None where that was not measured or planned."""
        if side == "planned":
            if self.planned is None:
                return None
            return self.planned.communication if stream else self.planned.compute
        return run.lane(stream, self.rank) if run is not None else None


@dataclass(frozen=True, slots=True)
class Rows:
    """A page of rows, how many there are, and how many ranks they stand for."""

    shown: tuple[Row, ...]
    page: int
    pages: int
    total: int
    ranks: int


def timeline_rows(mesh: LogicalMesh, plan: Planned | None, opened: Set[str], page: int) -> Rows:
    """The rows of a page."""
    if plan is None:
        sizes, total = [mesh.size], 1 + (mesh.size if "c0" in opened and mesh.size > 1 else 0)
    else:
        sizes = plan.ranks.sizes()
        total = sum(1 + (size if f"c{one}" in opened and size > 1 else 0) for one, size in enumerate(sizes))
    pages = max(1, -(-total // ROWS))
    page = min(max(0, page), pages - 1)
    shown = tuple(_rows(mesh, plan, sizes, opened, page * ROWS, (page + 1) * ROWS))
    return Rows(shown, page, pages, total, mesh.size)


def _rows(
    mesh: LogicalMesh, plan: Planned | None, sizes: list[int], opened: Set[str], first: int, last: int
) -> Iterator[Row]:
    """The rows of a stretch; what lies before it is counted, not made."""
    order = range(len(sizes))
    if plan is not None:
        firsts = plan.ranks.first_ranks()
        order = sorted(order, key=lambda one: firsts[one])
    at = 0
    for one in order:
        is_open = f"c{one}" in opened and sizes[one] > 1
        length = 1 + (sizes[one] if is_open else 0)
        if at + length > first and at < last:
            ranks = RankRange(0, mesh.size) if plan is None else plan.ranks.ranks_of(one)
            own = plan.classes[one] if plan is not None else None
            if first <= at < last:
                yield _class_row(mesh, one, ranks, own, is_open)
            begin, end = max(0, first - at - 1), max(0, min(length - 1, last - at - 1))
            for place in range(begin, end):
                rank = int(ranks[place])
                yield Row(f"c{one}r{rank}", rank, 1, f"rank {rank}", _place(mesh, rank), None, own)
        at += length
        if at >= last:
            return


def _class_row(mesh: LogicalMesh, one: int, ranks: Sequence[int], own: ClassPlan | None, is_open: bool) -> Row:
    size, rank = len(ranks), int(ranks[0])
    if size == 1:
        return Row(f"c{one}", rank, 1, f"rank {rank}", _place(mesh, rank), None, own)
    label = f"{'all ' if size == mesh.size else ''}{plural(size, 'rank')}"
    return Row(f"c{one}", rank, size, label, ranks_text(ranks, limit=3), is_open, own)


def _place(mesh: LogicalMesh, rank: int) -> str:
    """The coordinates of a rank."""
    if len(mesh.axes) < 2:
        return ""
    coordinates = mesh.coordinates(rank)
    return ", ".join(f"{axis.name}={at}" for axis, at in zip(mesh.axes, coordinates, strict=True))
