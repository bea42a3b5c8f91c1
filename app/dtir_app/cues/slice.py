"""Blocks of tensors, drawn to scale, one rank's blocks filled: as declared beside as they follow (``sharding.*`` and its kin)."""

from __future__ import annotations

from itertools import accumulate

from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.scalars import scalar_text
from dtir.analysis.states import State
from dtir_app.cues.case import Case
from dtir_app.cues.chain import NODE_H, NODE_W, state_words
from dtir_app.cues.marks import Choice, Picture, kept, listed

SIDE = 168.0
MOST_BLOCKS = 16
MOST_RANKS = 64
MOST_VALUES = 4


def draw(case: Case) -> Picture:
    """Operands and results of the task, or the value alone."""
    picture = Picture("slice")
    context = case.known.context
    item = case.deviation
    if context is None:
        return picture
    count = min(case.store.mesh.size, 16)
    rank = int(kept(case.options, "rank", [str(number) for number in range(count)]))
    if count > 1:
        options = tuple((str(number), str(number)) for number in range(count))
        picture.choices.append(Choice("rank", "blocks of rank", options, str(rank)))
    x = 0.0
    task = case.task if case.finding is None or case.finding.tasks else -1
    operands = list(dict.fromkeys(case.operands(task)))[:MOST_VALUES] if task >= 0 else list(case.values[:MOST_VALUES])
    results = case.outputs(task)[:2] if task >= 0 else []
    marked = _marked(case, item)
    grids = _Grids(case, picture, rank)
    bottom = 0.0
    for value in operands:
        state = case.declared(value)
        if state is not None:
            x, low = grids.draw(
                x, value, state, wrong=value in marked, note="as it is read" if task >= 0 else "as declared"
            )
            bottom = max(bottom, low)
    if task >= 0:
        picture.node(
            x, 70, NODE_W, NODE_H, family=int(case.store.tasks.family[task]), code=case.task_code(task),
            text=case.task_name(task), key=case.task_key(task), tone="bad" if case.finding is not None else "",
            note=_task_words(case, task),
        )  # fmt: skip
        picture.text(x + NODE_W / 2, 122, _task_words(case, task), anchor="middle", tone="muted", size=10)
        x += NODE_W + 34
    for value in results:
        state = case.declared(value)
        follows = _follows(case, item, value, state)
        if state is not None and follows is not None:
            x, low = grids.draw(x, value, follows, wrong=False, note="as it follows")
            bottom = max(bottom, low)
        if state is not None:
            x, low = grids.draw(x, value, state, wrong=value in marked, note="as declared")
            bottom = max(bottom, low)
    picture.explain("box", "accent", f"what rank {rank} holds")
    picture.says = _says(case, item, rank)
    _item_words(case, picture, item)
    return picture


def _marked(case: Case, item: Deviation | None) -> set[int]:
    if case.finding is None:
        return set()
    if item is None:
        return set(case.values[:1])
    found = {case.operand(item.operand)} if item.operand is not None else set[int]()
    if item.result is not None and case.task >= 0 and item.kind in (Kind.MISMATCH, Kind.SCATTER_DIM, Kind.ORDER):
        outputs = case.outputs(case.task)
        found |= set(outputs[item.result : item.result + 1])
    return {value for value in found if value >= 0} or set(case.values[:1])


def _follows(case: Case, item: Deviation | None, value: int, declared: State | None) -> State | None:
    """The layout that follows, where it is another than the declared one."""
    if item is None or declared is None or item.kind is not Kind.MISMATCH:
        known = case.state(value)
        if known is not None and declared is not None and known.known and known.state.dims != declared.dims:
            return known.state
        return None
    dims = [tuple(axis for axis in axes if axis not in item.axes) for axes in declared.dims]
    prefix = "split on dim "
    if item.found.startswith(prefix) and item.found[len(prefix) :].isdecimal():
        dim = int(item.found[len(prefix) :])
        if dim < len(dims):
            dims[dim] = (*dims[dim], *item.axes)
    return State(tuple(dims), declared.partial, declared.op, declared.varying, declared.at)


def _task_words(case: Case, task: int) -> str:
    spec = getattr(case.record(task).body, "spec", None)
    parts = [f"{label} {number}" for label, name in (("dim", "dim"), ("split", "split_dim"), ("concat", "concat_dim"))
             if (number := getattr(spec, name, None)) is not None]  # fmt: skip
    how = case.store.tasks.group_axes.get(task)
    over = f"over {'+'.join(how.axes)}" if how is not None and how.axes else ""
    return " ".join([*parts, over]).strip()


def _says(case: Case, item: Deviation | None, rank: int) -> str:
    if case.finding is None and _loose(case):
        return "Shapes are what one rank holds: the program does not say how the whole is cut."
    if case.finding is None:
        return f"Every tensor is cut as its reader wants it; what rank {rank} holds is filled."
    axes = listed(item.axes if item is not None and item.axes else case.axes)
    match item.kind if item is not None else None:
        case Kind.MISMATCH:
            return f"Rank {rank} holds other elements (as it follows) than the declared layout says, along {axes}."
        case Kind.OPERANDS:
            return f"The operands are cut differently along {axes}: the filled blocks of rank {rank} do not belong together."
        case Kind.UNEVEN:
            return f"The extent does not divide by the number of shards over {axes}: the last block is smaller than the others."
        case Kind.GATHER_DIM | Kind.SCATTER_DIM | Kind.ALL_TO_ALL_DIMS:
            return f"The task works on another dim than the one that {axes} splits."
        case Kind.RESHAPE:
            return f"What rank {rank} holds before is no block of the reshaped tensor."
        case Kind.LOCAL_INDEX:
            return "Every rank counts its block from 0, though the blocks begin elsewhere."
        case Kind.ORDER:
            return f"The axes {axes} cut the dim in another order, so that rank {rank} has another block."
        case Kind.PADDING:
            return "Padded elements (dotted) enter the result."
        case _:
            return f"The blocks of the tensors around the task, those of rank {rank} filled."


def _loose(case: Case) -> bool:
    """Whether everything around is per-rank data."""
    values = [*case.values, *(case.operands(case.task) if case.task >= 0 else ())]
    states = [case.declared(value) for value in values]
    return bool(states) and all(state is not None and bool(state.varying) and not any(state.dims) for state in states)


def _item_words(case: Case, picture: Picture, item: Deviation | None) -> None:
    if item is None:
        return
    if item.found or item.wanted:
        found, wanted = item.found or "–", item.wanted or "–"
        picture.fact("found / wanted", f"{found} / {wanted}", tone="bad")
    if item.dims:
        picture.fact("dims", listed(item.dims))
    if item.axes:
        picture.fact("axes", listed(item.axes))


class _Grids:
    def __init__(self, case: Case, picture: Picture, rank: int) -> None:
        self.case, self.picture, self.rank = case, picture, rank
        context = case.known.context
        assert context is not None
        self.around = context.around
        self.space = context.around.space

    def draw(self, x: float, value: int, state: State, *, wrong: bool, note: str) -> tuple[float, float]:
        """One tensor; returns where the next one begins, and the bottom."""
        picture, case = self.picture, self.case
        shape = case.value(value).type.shape
        down, across = _shown_dims(state, len(shape))
        rows, columns = self._cuts(value, state, down), self._cuts(value, state, across)
        wide, high = self._extents(value, down, across)
        top = 58.0
        picture.text(x, 8, case.value_name(value), bold=True, mono=True, most=SIDE + 20)
        picture.text(
            x, 25, f"{case.store.values.shape[value]}  {state_words(state)}", tone="muted", size=11, most=SIDE + 30
        )
        picture.text(x, 42, note, tone="bad" if wrong else "muted", size=11, bold=wrong)
        left = x + (34 if down >= 0 else 0)
        held = self._blocks(state, down, across)
        for i, (r0, r1) in enumerate(rows):
            for j, (c0, c1) in enumerate(columns):
                ranks = held.get((i, j), [])
                mine = self.rank in ranks
                real = r1 > r0 and c1 > c0
                picture.rect(
                    left + c0 * wide, top + r0 * high, max(1.5, (c1 - c0) * wide), max(1.5, (r1 - r0) * high),
                    fill="accent" if mine else "plain", stroke="bad" if wrong else "muted", thick=1.6 if wrong else 1.2,
                    dashed=not real, says=f"{case.value_name(value)} block {i},{j}: rank {listed(ranks)}",
                )  # fmt: skip
                if (c1 - c0) * wide > 26 and (r1 - r0) * high > 13:
                    cx, cy = left + (c0 + c1) / 2 * wide, top + (r0 + r1) / 2 * high
                    words = listed(ranks, 3)
                    most = (c1 - c0) * wide - 4
                    picture.badge(cx, cy, words if len(words) * 6.5 < most else f"{len(ranks)}", tone="raised")
        self._padding(value, state, down, across, left, top, wide, high)
        if down >= 0:
            self._axis(value, state, down, left - 8, top + high / 2, "end")
        if across >= 0:
            self._axis(value, state, across, left + wide / 2, top + high + 11, "middle")
        picture.fact(
            f"{case.value_name(value)}, {note}",
            f"{case.store.values.shape[value]} {state_words(state)}",
            case.value_key(value),
            "bad" if wrong else "",
        )
        return left + wide + 44, top + high + 22

    def _axis(self, value: int, state: State, dim: int, x: float, y: float, anchor: str) -> None:
        axes = state.dims[dim] if dim < len(state.dims) else ()
        extent = scalar_text(self.case.value(value).type.shape[dim]).replace("workload.", "")
        words = (
            f"dim {dim}" if anchor == "end" else f"dim {dim} = {extent}{', cut by ' + '·'.join(axes) if axes else ''}"
        )
        self.picture.text(x, y, words, anchor=anchor, tone="muted", size=10)
        if anchor == "end" and axes:
            self.picture.text(x, y + 13, "·".join(axes), anchor=anchor, tone="muted", size=10)

    def _number(self, value: int, dim: int) -> int | None:
        return self.around.number(self.case.value(value).type.shape[dim])

    def _extents(self, value: int, down: int, across: int) -> tuple[float, float]:
        """Pixels of the whole tensor: squarer than it is, so that thin ones stay legible."""
        rows = (self._number(value, down) or 1) if down >= 0 else 1
        columns = (self._number(value, across) or 1) if across >= 0 else 1
        ratio = max(0.4, min(2.5, (columns / rows) ** 0.5)) if down >= 0 and across >= 0 else 2.5
        wide = SIDE if ratio >= 1 else max(96.0, SIDE * ratio)
        high = SIDE if ratio <= 1 else SIDE / ratio
        return wide, (high * 0.78 if down >= 0 else 52.0)

    def _cuts(self, value: int, state: State, dim: int) -> list[tuple[float, float]]:
        """Bounds of the blocks of a dim, as fractions."""
        if dim < 0:
            return [(0.0, 1.0)]
        axes = state.dims[dim] if dim < len(state.dims) else ()
        count = self.space.count(axes)
        if count <= 1 or count > MOST_BLOCKS:
            return [(0.0, 1.0)]
        sizes, extent = state.size_of(dim), self._number(value, dim)
        if sizes is not None and sum(sizes):
            stops = list(accumulate(sizes))
            return [(a / stops[-1], b / stops[-1]) for a, b in zip([0, *stops[:-1]], stops, strict=True)]
        if extent is not None and extent % count and extent > count:
            step = -(-extent // count)
            return [(min(extent, at * step) / extent, min(extent, (at + 1) * step) / extent) for at in range(count)]
        return [(at / count, (at + 1) / count) for at in range(count)]

    def _blocks(self, state: State, down: int, across: int) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for rank in range(min(self.case.store.mesh.size, MOST_RANKS)):
            place = tuple(self._place(state, dim, rank) for dim in (down, across))
            found.setdefault((place[0], place[1]), []).append(rank)
        return found

    def _place(self, state: State, dim: int, rank: int) -> int:
        axes = state.dims[dim] if 0 <= dim < len(state.dims) else ()
        return self.space.position(rank, axes) if 1 < self.space.count(axes) <= MOST_BLOCKS else 0

    def _padding(
        self, value: int, state: State, down: int, across: int, left: float, top: float, wide: float, high: float
    ) -> None:
        """What explicit sizes have beyond the extent."""
        for dim, upright in ((down, True), (across, False)):
            sizes = state.size_of(dim) if dim >= 0 else None
            extent = self._number(value, dim) if dim >= 0 else None
            if sizes is None or extent is None or sum(sizes) <= extent:
                continue
            share = 1 - extent / sum(sizes)
            area = (
                (left, top + high * (1 - share), wide, high * share)
                if upright
                else (left + wide * (1 - share), top, wide * share, high)
            )
            self.picture.rect(
                *area, stroke="warn", hatch="warn", turn=3, dashed=True, says=f"{sum(sizes) - extent} padded elements"
            )
            self.picture.explain("hatch", "warn", "padding")
            self.picture.fact("padding", f"{sum(sizes) - extent} elements beyond the extent {extent} on dim {dim}")


def _shown_dims(state: State, rank: int) -> tuple[int, int]:
    """Down and across: split dims first."""
    if rank == 0:
        return -1, -1
    if rank == 1:
        return -1, 0
    split = [dim for dim, axes in enumerate(state.dims) if axes]
    rest = [dim for dim in range(rank - 1, -1, -1) if dim not in split]
    chosen = sorted((split + rest)[:2])
    return chosen[0], chosen[1]
