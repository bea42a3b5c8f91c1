"""A block with its frame of ghosts, and what the stencil reads around its corner (``halo.*``)."""

from __future__ import annotations

from dtir.analysis.deviations import Kind
from dtir.ir.tasks import LocalCompute
from dtir.ops import OpCall, OpError, Reach, find_op, op_attributes
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture

CELL = 26.0
OWNED = 5
MOST_WIDTH = 4


def draw(case: Case) -> Picture:
    """Cells: owned, ghosts that are there, ghosts that are missing; dots where the stencil reads."""
    item = case.deviation
    value = case.operand(item.operand) if item is not None and item.operand is not None else -1
    if value < 0:
        value = next(iter(case.values), -1)
    if value < 0 and case.task >= 0:
        value = next(
            (
                v
                for v in (*case.operands(case.task), *case.outputs(case.task))
                if case.value(v).sharding.halo is not None
            ),
            -1,
        )
    if value < 0 or case.known.context is None or not case.value(value).type.shape:
        picture = place.draw(case)
        picture.cue = "halo"
        return picture
    picture = Picture("halo")
    dims = _dims(case, value)
    have = {dim: _have(case, value, dim) for dim in dims}
    reach = _reach(case)
    need = {dim: _need(case, dim, reach, have[dim]) for dim in dims}
    _Block(case, picture, value, dims, have, need, reach).draw()
    return picture


def _dims(case: Case, value: int) -> list[int]:
    """Down and across: dims with ghosts first."""
    record = case.value(value)
    item = case.deviation
    wanted = list(item.dims) if item is not None else []
    wanted += [entry.dim for entry in record.sharding.halo.dims] if record.sharding.halo is not None else []
    wanted += [dim for dim, axes in enumerate(record.sharding.dimension_axes) if axes]
    wanted += list(range(len(record.type.shape)))
    return sorted(dict.fromkeys(wanted[:8]))[:2] if len(set(wanted)) <= 2 else sorted(list(dict.fromkeys(wanted))[:2])


def _have(case: Case, value: int, dim: int) -> int:
    """Ghost layers that are up to date on both sides."""
    known = case.state(value)
    if known is not None and known.known:
        return min(known.ghost(dim))
    halo = case.value(value).sharding.halo
    found = [min(entry.before, entry.after) for entry in (halo.dims if halo is not None else ()) if entry.dim == dim]
    return found[0] if found else 0


def _reach(case: Case) -> Reach | None:
    """How far the task reads."""
    if case.task < 0:
        return None
    record = case.record(case.task)
    operator = find_op(record.operation) if isinstance(record.body, LocalCompute) else None
    operands, outputs = case.operands(case.task), case.outputs(case.task)
    if operator is None or not operands:
        return None
    shapes = tuple(case.value(value).type.shape for value in operands)
    results = tuple(case.value(value).type.shape for value in outputs)
    try:
        return operator.reach(OpCall(shapes, results, op_attributes(record)))
    except OpError:
        return None


def _need(case: Case, dim: int, reach: Reach | None, have: int) -> int:
    item = case.deviation
    if item is not None and dim in item.dims and item.wanted.isdecimal():
        return int(item.wanted)
    if reach is not None and dim < len(reach.radius):
        return reach.radius[dim]
    return have


class _Block:
    def __init__(
        self,
        case: Case,
        picture: Picture,
        value: int,
        dims: list[int],
        have: dict[int, int],
        need: dict[int, int],
        reach: Reach | None,
    ) -> None:
        self.case, self.picture, self.value, self.dims, self.reach = case, picture, value, dims, reach
        self.down = dims[0] if len(dims) > 1 else -1
        self.across = dims[-1]
        self.have = {dim: min(width, MOST_WIDTH) for dim, width in have.items()}
        self.need = {dim: min(width, MOST_WIDTH) for dim, width in need.items()}
        self.true_have, self.true_need = have, need
        item = case.deviation
        self.kind = item.kind if item is not None else None
        known = case.state(value)
        halo = case.value(value).sharding.halo
        self.corners = (
            known.corners if known is not None and known.known else halo.corners if halo is not None else True
        )

    def draw(self) -> None:
        frame_down = self._frame(self.down)
        frame_across = self._frame(self.across)
        rows = OWNED + 2 * frame_down if self.down >= 0 else 1
        columns = OWNED + 2 * frame_across
        left, top = 12.0, 44.0
        name = self.case.value_name(self.value)
        self.picture.text(left, 8, f"one rank's block of {name}", bold=True)
        self.picture.text(left, 26, self._layout(), tone="muted", size=11)
        for row in range(rows):
            for column in range(columns):
                self._cell(left, top, row, column, frame_down, frame_across)
        self.picture.rect(
            left + frame_across * CELL, top + frame_down * CELL, OWNED * CELL, (OWNED if self.down >= 0 else 1) * CELL,
            stroke="text", thick=2.5, says="owned elements",
        )  # fmt: skip
        self._stamp(left, top, frame_down, frame_across)
        self.picture.text(
            left + columns * CELL / 2,
            top + rows * CELL + 14,
            f"dim {self.across}",
            anchor="middle",
            tone="muted",
            size=10,
        )
        if self.down >= 0:
            self.picture.text(
                left + columns * CELL + 8, top + rows * CELL / 2, f"dim {self.down}", tone="muted", size=10
            )
        self._words()

    def _layout(self) -> str:
        return f"{self.case.store.values.shape[self.value]} {self.case.store.values.layout[self.value]}"

    def _frame(self, dim: int) -> int:
        return max(self.have.get(dim, 0), self.need.get(dim, 0)) if dim >= 0 else 0

    def _cell(self, left: float, top: float, row: int, column: int, frame_down: int, frame_across: int) -> None:
        out_down = self._outside(row, frame_down) if self.down >= 0 else 0
        out_across = self._outside(column, frame_across)
        ghost = out_down or out_across
        corner = out_down > 0 and out_across > 0
        there = (out_down <= self.have.get(self.down, 0) if self.down >= 0 else True) and out_across <= self.have.get(
            self.across, 0
        )
        wanted = (out_down <= self.need.get(self.down, 0) if self.down >= 0 else True) and out_across <= self.need.get(
            self.across, 0
        )
        if corner and not self.corners:
            there = False
            wanted = wanted and self.reach is not None and self.reach.diagonal
        elif corner and not there and not (self.reach is not None and self.reach.diagonal):
            wanted = False
        missing = bool(ghost) and not there and wanted
        old = bool(ghost) and self.kind is Kind.HALO_STALE and not there
        twice = bool(ghost) and there and self.kind is Kind.DOUBLE_COUNT
        if ghost and not there and not missing and not old:
            return
        says = (
            "missing ghost"
            if missing
            else "old ghost"
            if old
            else "counted again"
            if twice
            else "ghost"
            if ghost
            else "owned"
        )
        self.picture.rect(
            left + column * CELL, top + row * CELL, CELL, CELL,
            fill="plain" if missing or not ghost else "warn" if old or twice else "axis-1",
            stroke="bad" if missing or old or twice else "muted", hatch="bad" if missing else "", thick=1.5 if missing else 0.8, says=says,
        )  # fmt: skip
        if missing:
            self.picture.explain("hatch", "bad", "ghost that is read and not there")
        elif old:
            self.picture.explain("box", "warn", "ghost older than the interior")
        elif twice:
            self.picture.explain("box", "warn", "ghost that is counted again")
        elif ghost:
            self.picture.explain("box", "axis-1", "ghost, up to date")
        else:
            self.picture.explain("box", "plain", "owned")

    def _outside(self, place: int, frame: int) -> int:
        """How many layers outside the owned elements a place is."""
        if place < frame:
            return frame - place
        if place >= frame + OWNED:
            return place - frame - OWNED + 1
        return 0

    def _stamp(self, left: float, top: float, frame_down: int, frame_across: int) -> None:
        """The stencil at the upper left owned element: where it reads."""
        if self.reach is None:
            return
        radius_down = min(self.reach.radius[self.down], MOST_WIDTH) if 0 <= self.down < len(self.reach.radius) else 0
        radius_across = min(self.reach.radius[self.across], MOST_WIDTH) if self.across < len(self.reach.radius) else 0
        for row in range(-radius_down, radius_down + 1):
            for column in range(-radius_across, radius_across + 1):
                if row and column and not self.reach.diagonal:
                    continue
                x = left + (frame_across + column + 0.5) * CELL
                y = top + ((frame_down + row) if self.down >= 0 else 0) * CELL + CELL / 2
                centre = not row and not column
                self.picture.dot(
                    x, y, 6 if centre else 4, fill="accent" if centre else "text", says=f"reads {row:+d}, {column:+d}"
                )
        self.picture.explain("box", "accent", "dots: what the stencil reads for its corner element")

    def _words(self) -> None:
        picture, case = self.picture, self.case
        name = case.value_name(self.value)
        for dim in self.dims:
            have, need = self.true_have[dim], self.true_need[dim]
            picture.fact(
                f"dim {dim}", f"{have} ghost layers up to date, {need} read", tone="bad" if need > have else ""
            )
        picture.fact(
            "corners",
            "filled" if self.corners else "not filled",
            tone="" if self.corners or self.kind is not Kind.HALO_CORNER else "bad",
        )
        if self.reach is not None:
            picture.fact(
                "stencil",
                f"radius {', '.join(map(str, self.reach.radius))}{', diagonals too' if self.reach.diagonal else ''}",
            )
        picture.fact(name, self._layout(), case.value_key(self.value))
        match self.kind:
            case Kind.HALO_THIN:
                lacking = next(
                    (
                        self.true_need[dim] - self.true_have[dim]
                        for dim in self.dims
                        if self.true_need[dim] > self.true_have[dim]
                    ),
                    0,
                )
                picture.says = f"The stencil reads {lacking} layer{'s' if lacking != 1 else ''} beyond the ghosts of {name} (hatched)."
            case Kind.HALO_CORNER:
                picture.says = f"The stencil reads the corners of the frame, and the corner ghosts of {name} (hatched) are not filled."
            case Kind.HALO_STALE:
                picture.says = f"The ghosts of {name} are older than what they surround."
            case Kind.NARROW_SHARD:
                picture.says = f"A shard of {name} is narrower than the frame that its neighbour needs of it."
            case Kind.DOUBLE_COUNT:
                picture.says = f"The reduction counts the ghosts of {name}, which a neighbour owns and counts as well."
            case _:
                stale = case.code == "halo.stale"
                picture.says = (
                    f"The ghosts of {name} are read after the interior has changed."
                    if stale
                    else f"The frame of {name} holds what the stencil reads."
                )
