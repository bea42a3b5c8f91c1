"""The shard map of a tensor: two dims to look at, the others at one block each; one tile a block, with its owners.

A tile says which ranks hold the block and how: equal copies (×n) or a pending reduction (Σ). Along axes where each rank has data of
its own there is no one tensor: the map has a sheet for every coordinate. Blocks are drawn to scale, so an uneven split looks uneven.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dtir.ir.values import DistributedValue
from dtir_app.frames.blocks import WHOLE, DimBlocks, Holders, dim_blocks
from dtir_app.layouts import axis_states
from dtir_app.store import Store
from dtir_app.text import count_text, ranks_text

TILE_LIMIT = 1024
"""Tiles of one map."""

SHEET_LIMIT = 64
"""Sheets of one map."""

COLOURS = 6
TICK_LIMIT = 33
GAP = 0.03
TILE_COLUMNS = (
    "left",
    "right",
    "top",
    "bottom",
    "x",
    "y",
    "colour",
    "hatch",
    "label",
    "badge",
    "ranks",
    "range",
    "edge",
)
TICK_COLUMNS = ("x", "y", "text", "align", "baseline", "angle")


@dataclass(frozen=True, slots=True)
class TensorFrame:
    """Columns of one shard map and what is written around it. Places are fractions of the unit square."""

    name: str
    tiles: dict[str, list[object]]
    ticks: dict[str, list[object]]
    dims: tuple[int, int]
    choices: list[dict[str, object]]
    states: list[dict[str, str]]
    sliders: list[dict[str, object]]
    note: str = ""
    limits: str = ""
    copies: int = 1
    partial: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What a collective says about the per-rank data around it, whatever the program states of them.

    Args:
        equal: axes along which all members of a group hold the same afterwards.
        term: what each member contributes before: ``term of Σ``.
        note: the same in a sentence.
    """

    equal: frozenset[str] = frozenset()
    term: str = ""
    note: str = ""


NOTHING_KNOWN = Known()


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet of the map: where it lies in the unit square, and its coordinates along the per-rank axes."""

    left: float
    top: float
    width: float
    height: float
    at: Mapping[str, int]


def default_dims(value: DistributedValue) -> tuple[int, int]:
    """The dims shown unless a person picks others (down, across): split dims first, then the last ones."""
    rank = len(value.type.shape)
    if rank == 0:
        return (-1, -1)
    if rank == 1:
        return (-1, 0)
    split = [dim for dim, axes in enumerate(value.sharding.dimension_axes) if axes and dim < rank]
    rest = [dim for dim in range(rank - 1, -1, -1) if dim not in split]
    chosen = sorted((split + rest)[:2])
    return (chosen[0], chosen[1])


def tensor_frame(
    store: Store,
    index: int,
    *,
    dims: tuple[int, int] | None = None,
    at: Mapping[int, int] | None = None,
    known: Known = NOTHING_KNOWN,
) -> TensorFrame:
    """The shard map of a value.

    Args:
        store: the program.
        index: the value.
        dims: the dim down and the dim across; -1 for none. None, or a dim that the value does not have, for the usual ones.
        at: block to show of every other dim.
        known: what the task at hand says about per-rank data.
    """
    value = store.value_records[index]
    rank = len(value.type.shape)
    sizes = {axis.name: axis.size for axis in store.mesh.axes}
    if dims is None or not all(-1 <= dim < rank for dim in dims) or (dims[0] == dims[1] and dims[0] >= 0):
        dims = default_dims(value)
    blocks = [dim_blocks(value, dim, sizes, store.program.bindings) for dim in range(rank)]
    down = blocks[dims[0]] if dims[0] >= 0 else WHOLE
    across = blocks[dims[1]] if dims[1] >= 0 else WHOLE
    at = {dim: min(max(0, (at or {}).get(dim, 0)), blocks[dim].count - 1) for dim in range(rank) if dim not in dims}
    holders = Holders(store, value, sizes)
    if not set(holders.varying):
        known = NOTHING_KNOWN  # the layout says it already
    fixed: dict[str, int] = {}
    for dim, block in at.items():
        fixed |= holders.coordinates(blocks[dim].axes, block)
    sheets, sheet_total = sheets_of(holders.varying, sizes)
    tiles = _tiles(down, across, fixed, holders, sheets, known)
    wanted = down.count * across.count * sheet_total
    limits = [f"dim {block.dim}: {block.problem}" for block in blocks if block.problem]
    if len(tiles["x"]) < wanted:
        limits.append(f"{count_text(len(tiles['x']))} of {count_text(wanted)} blocks drawn")
    return TensorFrame(
        name=store.values.name[index],
        tiles=tiles,
        ticks=_sheet_ticks(holders.varying, sheets) if len(sheets) > 1 else _ticks(down, across),
        dims=dims,
        choices=[{"dim": dim, "label": dim_label(block)} for dim, block in enumerate(blocks)],
        states=[{"axis": axis, "state": state} for axis, state in axis_states(value.sharding, store.mesh).items()],
        sliders=[
            {"dim": dim, "label": dim_label(blocks[dim]), "value": at[dim], "max": blocks[dim].count - 1}
            for dim in sorted(at)
            if blocks[dim].count > 1
        ],
        note=_note(value, rank, known),
        limits="; ".join(limits),
        copies=holders.copies,
        partial=holders.sign,
    )


def dim_label(block: DimBlocks) -> str:
    """``dim 1: 8,192 by tp``."""
    if block.dim < 0:
        return ""
    return f"dim {block.dim}: {block.label}" + (f" by {'+'.join(block.axes)}" if block.axes else "")


def _note(value: DistributedValue, rank: int, known: Known) -> str:
    if value.sharding.varying:
        axes = "×".join(value.sharding.varying)
        if known.note:
            return f"Per-rank data along {axes}. {known.note}"
        return f"Per-rank data along {axes}: the shape is what one rank holds, and the program does not say how they relate."
    return "A scalar: one element." if rank == 0 else ""


def sheets_of(varying: Sequence[str], sizes: Mapping[str, int]) -> tuple[list[Sheet], int]:
    """A sheet for every coordinate of the per-rank axes, the last axis across, the others down; and how many there are."""
    total = math.prod(sizes[name] for name in varying)
    if total == 1:
        return [Sheet(0.0, 0.0, 1.0, 1.0, dict.fromkeys(varying, 0))], 1
    across = min(sizes[varying[-1]], SHEET_LIMIT)
    down = min(total // sizes[varying[-1]], max(1, SHEET_LIMIT // across))
    outer = itertools.islice(itertools.product(*(range(sizes[name]) for name in varying[:-1])), down)
    width, height = (1.0 + GAP) / across, (1.0 + GAP) / down
    made = [
        Sheet(
            column * width, row * height, width - GAP, height - GAP, dict(zip(varying, (*place, column), strict=True))
        )
        for row, place in enumerate(outer)
        for column in range(across)
    ]
    return made, total


def _tiles(
    down: DimBlocks,
    across: DimBlocks,
    fixed: Mapping[str, int],
    holders: Holders,
    sheets: Sequence[Sheet],
    known: Known,
) -> dict[str, list[object]]:
    tiles: dict[str, list[object]] = {name: [] for name in TILE_COLUMNS}
    height, width = down.extent_drawn, across.extent_drawn
    usual = (down.largest, across.largest)
    pending = bool(holders.sign or known.term)
    hatch = "." if pending else "/" if holders.copies > 1 or known.equal else " "
    seen: dict[tuple[int, ...], int] = {}
    for sheet, row, column in itertools.islice(_places(sheets, down.count, across.count), TILE_LIMIT):
        (top, bottom), (left, right) = down.bounds[row], across.bounds[column]
        place = {**fixed, **sheet.at, **holders.coordinates(down.axes, row), **holders.coordinates(across.axes, column)}
        ranks, cut = holders.ranks(place)
        # Sheets that are known to be equal have one colour.
        alike = tuple(coordinate for name, coordinate in sheet.at.items() if name not in known.equal)
        number = seen.setdefault(alike, len(seen))
        x0, x1 = sheet.left + left / width * sheet.width, sheet.left + right / width * sheet.width
        y0, y1 = sheet.top + top / height * sheet.height, sheet.top + bottom / height * sheet.height
        cell = {
            "left": x0,
            "right": x1,
            "top": y0,
            "bottom": y1,
            "x": (x0 + x1) / 2,
            "y": (y0 + y1) / 2,
            "colour": str((number + row * across.count + column) % COLOURS),
            "hatch": hatch,
            "label": "nobody" if not ranks else ranks_text(ranks, limit=3) + (" …" if cut else ""),
            "badge": _badge(holders, known),
            "ranks": ranks_text(ranks, limit=24) + (f" of {count_text(holders.total)}" if cut else ""),
            "range": _range_text(down, row, across, column),
            "edge": "even" if (bottom - top, right - left) == usual and ranks else "odd",
        }
        for name, item in cell.items():
            tiles[name].append(item)
    return tiles


def _places(sheets: Sequence[Sheet], rows: int, columns: int) -> Iterator[tuple[Sheet, int, int]]:
    for sheet in sheets:
        for row in range(rows):
            for column in range(columns):
                yield sheet, row, column


def _badge(holders: Holders, known: Known) -> str:
    parts = [holders.sign] if holders.sign else []
    if holders.copies > 1:
        parts.append(f"×{count_text(holders.copies)}")
    if known.term:
        parts.append(known.term)
    elif known.equal:
        parts.append("= in group")
    elif holders.varying:
        parts.append("own data")
    return " ".join(parts)


def _range_text(down: DimBlocks, row: int, across: DimBlocks, column: int) -> str:
    parts: list[str] = []
    for block, number in ((down, row), (across, column)):
        if block.dim >= 0:
            start, stop = block.bounds[number]
            parts.append(
                f"dim {block.dim} [{start:g}, {stop:g})"
                if block.extent is not None
                else f"dim {block.dim} block {number}"
            )
    return ", ".join(parts)


def _add(ticks: dict[str, list[object]], x: float, y: float, text: str, down: bool) -> None:
    align, baseline = ("right", "middle") if down else ("center", "bottom")
    for name, item in zip(TICK_COLUMNS, (x, y, text, align, baseline, 0.0), strict=True):
        ticks[name].append(item)


def _ticks(down: DimBlocks, across: DimBlocks) -> dict[str, list[object]]:
    """Where blocks begin and end, as element indices."""
    ticks: dict[str, list[object]] = {name: [] for name in TICK_COLUMNS}
    for block, is_down in ((down, True), (across, False)):
        if block.dim < 0 or block.extent is None:
            continue
        stops = [0.0, *(stop for _, stop in block.bounds)]
        for stop in stops if len(stops) <= TICK_LIMIT else (stops[0], stops[-1]):
            place = stop / block.extent_drawn
            _add(ticks, -0.006 if is_down else place, place if is_down else -0.012, count_text(stop), is_down)
    return ticks


def _sheet_ticks(varying: Sequence[str], sheets: Sequence[Sheet]) -> dict[str, list[object]]:
    """The coordinates of the sheets, above and beside them."""
    ticks: dict[str, list[object]] = {name: [] for name in TICK_COLUMNS}
    for sheet in sheets:
        if sheet.top == 0.0:
            text = f"{varying[-1]}={sheet.at[varying[-1]]}"
            _add(ticks, sheet.left + sheet.width / 2, -0.012, text, down=False)
        if sheet.left == 0.0 and len(varying) > 1:
            text = ", ".join(f"{name}={sheet.at[name]}" for name in varying[:-1])
            _add(ticks, -0.006, sheet.top + sheet.height / 2, text, down=True)
    return ticks


def pair_of(store: Store, task: int) -> tuple[list[int], list[int]]:
    """The tensors before and after a task: its operands and results, those of its scope that exist."""
    record, scope = store.task_records[task], int(store.tasks.scope[task])
    before = [store.value_at(scope, name.value) for name in record.operand_values]
    after = [store.value_at(scope, name.value) for name in record.outputs]
    return [item for item in before if item >= 0], [item for item in after if item >= 0]
