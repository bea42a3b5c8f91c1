"""The mesh with the groups of a collective, the ends of a transfer, or the owners of a tensor."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from dtir.analysis.groups import AxisFibres, Groups, axis_fibres, groups_of
from dtir.ir.collectives import Broadcast, CollectivePermute
from dtir.ir.ranks import RankRange
from dtir.ir.tasks import Collective, PointToPoint
from dtir_app.frames.meshgrid import CELL_LIMIT, Grid, default_columns, mesh_grid
from dtir_app.groups import group_label
from dtir_app.kinds import KINDS
from dtir_app.selection import Selection
from dtir_app.store import Store
from dtir_app.text import count_text, ranks_text

COLOURS = 6
LISTED_GROUPS = 200


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays which part on the mesh.

    Args:
        title: what is shown.
        groups: ordered member lists; of a permute its pairs.
        axes: axes that the groups span.
        names: what to call single groups, where they are no groups of axes.
        pairs: whether the groups are (source, destination) pairs.
        roots: ranks that are roots.
        note: a remark, say that the groups are only an example.
    """

    title: str
    groups: Groups = ()
    axes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    pairs: bool = False
    roots: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class MeshFrame:
    """Columns of the mesh picture and what is written beside it."""

    cells: dict[str, list[object]]
    arrows: dict[str, list[float]]
    ticks: dict[str, list[object]]
    extent: tuple[float, float]
    title: str
    note: str
    groups: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    group_total: int = 0
    shown: int = 0
    total: int = 0
    fixed: dict[str, int] = field(default_factory=dict[str, int])
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


def cast_of(store: Store, selection: Selection, axes: Collection[str]) -> Cast:
    """What the mesh shows for a selection; without one, the groups of some axes."""
    if selection.task >= 0:
        return _cast_of_task(store, selection.task)
    if selection.value >= 0:
        return _cast_of_value(store, selection.value)
    names = tuple(axis.name for axis in store.mesh.axes if axis.name in axes) or (store.mesh.axes[-1].name,)
    return Cast(f"{'×'.join(names)} groups", axis_fibres(store.mesh, names), names, note="nothing is selected")


def _cast_of_task(store: Store, index: int) -> Cast:
    record = store.task_records[index]
    name, kind = store.tasks.name[index], KINDS[store.tasks.kind[index]]
    match record.body:
        case Collective(spec=spec):
            groups = groups_of(spec, store.mesh)
            title = f"{kind.label} {name}"
            if groups is None:
                return Cast(title, note="it names an axis that the mesh does not have")
            how = store.tasks.group_axes.get(index)
            roots = frozenset(spec.roots or (spec.root,)) if isinstance(spec, Broadcast) else frozenset[int]()
            return Cast(title, groups, how.axes if how else (), (), isinstance(spec, CollectivePermute), roots)
        case PointToPoint(spec=spec):
            pair = ((spec.source_rank, spec.destination_rank),)
            return Cast(f"transfer {name}", pair, pairs=True)
        case _:
            return Cast(f"{kind.label} {name}", (record.ranks,), names=("runs here",))


def _cast_of_value(store: Store, index: int) -> Cast:
    """Ranks that hold the same block form a group."""
    record = store.value_records[index]
    owners = record.owners
    title = f"owners of {store.values.name[index]}"
    split = [name for name in record.sharding.split_axes if name in store.mesh.axis_names]
    if not split or isinstance(owners, RankRange) or len(owners) > CELL_LIMIT:
        return Cast(title, (owners,), names=("holds it",))
    blocks: dict[tuple[int, ...], list[int]] = {}
    position = {name: number for number, name in enumerate(store.mesh.axis_names)}
    for rank in owners:
        if rank < store.mesh.size:
            place = store.mesh.coordinates(rank)
            blocks.setdefault(tuple(place[position[name]] for name in split), []).append(rank)
    names = tuple(
        f"block {', '.join(f'{name}={c}' for name, c in zip(split, key, strict=True))}" for key in sorted(blocks)
    )
    return Cast(
        title, tuple(tuple(blocks[key]) for key in sorted(blocks)), names=names, note="one colour a block of the tensor"
    )


def mesh_frame(
    store: Store,
    selection: Selection,
    *,
    axes: Collection[str] = (),
    columns: Collection[str] | None = None,
    at: Mapping[str, int] | None = None,
    limit: int = CELL_LIMIT,
) -> MeshFrame:
    """The mesh picture of a selection.

    Args:
        store: the program.
        selection: whose groups, ends or owners to show.
        axes: whose groups to show when nothing is selected.
        columns: axes along columns; None for the usual ones.
        at: coordinates of axes that are shown at one coordinate only.
        limit: cells at most.
    """
    cast = cast_of(store, selection, axes)
    grid = mesh_grid(
        store.mesh, default_columns(store.mesh.axis_names) if columns is None else columns, at=at, limit=limit
    )
    group, member = _membership(cast, grid)
    cells: dict[str, list[object]] = {
        "x": grid.x.tolist(),
        "y": grid.y.tolist(),
        "rank": [str(rank) for rank in grid.ranks.tolist()],
        "place": [_place(store, rank) for rank in grid.ranks.tolist()],
        "group": group,
        "colour": ["none" if number < 0 else str(number % COLOURS) for number in group],
        "hatch": [_hatch(number) for number in group],
        "label": [
            _cell_label(cast, number, place, rank)
            for number, place, rank in zip(group, member, grid.ranks.tolist(), strict=True)
        ],
        "name": ["" if number < 0 else _group_name(store, cast, number) for number in group],
    }
    return MeshFrame(
        cells=cells,
        arrows=_arrows(cast, grid) if cast.pairs else {"x0": [], "y0": [], "x1": [], "y1": [], "angle": []},
        ticks=_tick_columns(grid),
        extent=(grid.width, grid.height),
        title=cast.title,
        note=cast.note,
        groups=_listed(store, cast),
        group_total=len(cast.groups),
        shown=len(grid.ranks),
        total=store.mesh.size,
        fixed=dict(grid.fixed),
        columns=grid.columns,
        rows=grid.rows,
    )


def _place(store: Store, rank: int) -> str:
    return ", ".join(
        f"{name}={coordinate}"
        for name, coordinate in zip(store.mesh.axis_names, store.mesh.coordinates(rank), strict=True)
    )


def _membership(cast: Cast, grid: Grid) -> tuple[list[int], list[int]]:
    """Group and place in it of every shown rank; -1 for ranks in none. The cost is that of the shown ranks' groups."""
    group, member = [-1] * len(grid.ranks), [-1] * len(grid.ranks)
    at = {rank: position for position, rank in enumerate(grid.ranks.tolist())}
    if cast.pairs:
        for number, pair in enumerate(cast.groups[:CELL_LIMIT]):
            for rank in pair:
                if rank in at and group[at[rank]] < 0:
                    group[at[rank]], member[at[rank]] = 0, number
        return group, member
    if isinstance(cast.groups, AxisFibres):
        for rank, cell in at.items():
            group[cell], member[cell] = _fibre_of(rank, cast.groups)
        return group, member
    seen = 0
    for number in range(len(cast.groups)):
        ranks = cast.groups[number]
        if isinstance(ranks, RankRange):
            found = [(position, at[rank]) for rank in at if rank in ranks for position in (_position(ranks, rank),)]
        else:
            found = [(position, at[rank]) for position, rank in enumerate(ranks) if rank in at]
        for position, cell in found:
            if group[cell] < 0:
                group[cell], member[cell] = number, position
                seen += 1
        if seen >= len(at):
            break
    return group, member


def _fibre_of(rank: int, fibres: AxisFibres) -> tuple[int, int]:
    """Which fibre a rank is in and its place there, by arithmetic: there may be millions of fibres."""
    number = place = 0
    for size, stride in zip(fibres.other_sizes, fibres.other_strides, strict=True):
        number = number * size + rank // stride % size
    for size, stride in zip(fibres.sizes, fibres.strides, strict=True):
        place = place * size + rank // stride % size
    return number, place


def _position(ranks: RankRange, rank: int) -> int:
    return (rank - ranks.start) // ranks.step


def _hatch(number: int) -> str:
    """Beyond the palette the same colour comes again with another hatch."""
    return (" ", "/", "\\", "x", ".", "+")[number // COLOURS % 6] if number >= 0 else " "


def _cell_label(cast: Cast, number: int, place: int, rank: int) -> str:
    if rank in cast.roots:
        return "root"
    if number < 0 or cast.pairs:
        return ""
    if len(cast.groups) == 1 and cast.names:
        return ""
    return f"g{number}·{place}"


def _group_name(store: Store, cast: Cast, number: int) -> str:
    if cast.pairs:
        return "takes part"
    if cast.names:
        return cast.names[number]
    return group_label(cast.groups[number], cast.axes, store.mesh) or f"group {number}"


def _listed(store: Store, cast: Cast) -> list[dict[str, str]]:
    """The groups as text, the first of them."""
    if cast.pairs:
        return [
            {"name": f"pair {number}", "members": f"{source} → {destination}", "colour": "0", "hatch": " "}
            for number, (source, destination) in enumerate(cast.groups[:LISTED_GROUPS])
        ]
    return [
        {
            "name": _group_name(store, cast, number),
            "members": ranks_text(cast.groups[number], limit=64),
            "colour": str(number % COLOURS),
            "hatch": _hatch(number),
        }
        for number in range(min(len(cast.groups), LISTED_GROUPS))
    ]


def groups_text(frame: MeshFrame) -> str:
    """The groups as lines to copy: ``tp group @ dp=0: 0, 1, 2, 3``."""
    lines = [frame.title, *(f"{item['name']}: {item['members']}" for item in frame.groups)]
    if frame.group_total > len(frame.groups):
        lines.append(f"… {count_text(frame.group_total - len(frame.groups))} more")
    return "\n".join(lines)


def _arrows(cast: Cast, grid: Grid) -> dict[str, list[float]]:
    at = {rank: position for position, rank in enumerate(grid.ranks.tolist())}
    made: dict[str, list[float]] = {"x0": [], "y0": [], "x1": [], "y1": [], "angle": []}
    for source, destination in cast.groups[:CELL_LIMIT]:
        if source not in at or destination not in at or source == destination:
            continue
        start = np.array([grid.x[at[source]], grid.y[at[source]]])
        end = np.array([grid.x[at[destination]], grid.y[at[destination]]])
        way = (end - start) / np.linalg.norm(end - start)
        # To the side of the straight line, so that two arrows between the same cells do not cover each other.
        side = np.array([-way[1], way[0]]) * 0.14
        tail, head = start + way * 0.3 + side, end - way * 0.3 + side
        made["x0"].append(float(tail[0]))
        made["y0"].append(float(tail[1]))
        made["x1"].append(float(head[0]))
        made["y1"].append(float(head[1]))
        # The picture's y axis points down; a marker without rotation points up.
        made["angle"].append(float(np.arctan2(-way[1], way[0]) - np.pi / 2))
    return made


def _tick_columns(grid: Grid) -> dict[str, list[object]]:
    """Coordinates along the edges: of the innermost axes as numbers, with the axis named once; of outer ones in full."""
    made: dict[str, list[object]] = {"x": [], "y": [], "text": [], "align": [], "baseline": []}

    def add(x: float, y: float, text: str, align: str, baseline: str) -> None:
        for name, item in zip(made, (x, y, text, align, baseline), strict=True):
            made[name].append(item)

    inner = {"x": grid.columns[-1] if grid.columns else "", "y": grid.rows[-1] if grid.rows else ""}
    for name, coordinate, which, place in grid.ticks:
        is_inner = name == inner[which]
        far = -0.62 if is_inner else -1.2
        text = str(coordinate) if is_inner else f"{name}={coordinate}"
        if which == "x":
            add(place, far, text, "center", "bottom")
        else:
            add(far, place, text, "right", "middle")
    if inner["x"]:
        add(-0.62, -0.62, f"{inner['x']} →", "right", "bottom")
    if inner["y"]:
        add(-0.62, grid.height - 0.38, f"{inner['y']} ↓", "right", "top")
    return made
