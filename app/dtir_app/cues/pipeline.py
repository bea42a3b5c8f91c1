"""Stages by time: forwards and backwards of microbatches, the bubble shaded, live microbatches counted (``pipeline.*``).

A forward takes one unit of time, a backward two. Every rank runs its slots in its own order, each when what it needs is there.
"""

from __future__ import annotations

from dtir.analysis.schedules import Slot, most_inflight, rank_orders, slots_of
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture

LEFT, TOP, UNIT, ROW, HIGH = 84.0, 26.0, 30.0, 54.0, 32.0
MOST_STAGES = 12
MOST_UNITS = 160

Key = tuple[int, int, int, bool]


def draw(case: Case) -> Picture:
    """The Gantt chart of the program's pipeline slots."""
    program = case.store.program
    slots = slots_of(program.tasks)
    if not slots:
        picture = place.draw(case)
        picture.cue = "pipeline"
        return picture
    picture = Picture("pipeline")
    by_task = {slot.task: slot for slot in slots}
    orders = [(rank, [by_task[index] for index in order]) for rank, order in rank_orders(program, sorted(by_task))]
    orders.sort(key=lambda item: (min(slot.stage for slot in item[1]), item[0]))
    _Gantt(case, picture, slots, orders[:MOST_STAGES]).draw()
    if len(orders) > MOST_STAGES:
        picture.fact("not shown", f"{len(orders) - MOST_STAGES} more ranks")
    return picture


class _Gantt:
    def __init__(self, case: Case, picture: Picture, slots: list[Slot], orders: list[tuple[int, list[Slot]]]) -> None:
        self.case, self.picture, self.slots, self.orders = case, picture, slots, orders
        self.stages = len({slot.stage for slot in slots})
        self.microbatches = len({slot.microbatch for slot in slots})
        self.chunks = 1 + max(slot.chunk for slot in slots)
        self.marked = set(case.tasks) if case.finding is not None else set[int]()
        self.there = {self._key(slot) for slot in slots}
        self.start: dict[int, int] = {}
        self.early: set[int] = set()
        self._run()

    def _key(self, slot: Slot) -> Key:
        return slot.stage, slot.chunk, slot.microbatch, slot.forward

    def _needs(self, slot: Slot) -> list[Key]:
        """What must have run before a slot."""
        stage, chunk, microbatch = slot.key
        found: list[Key] = []
        if slot.forward:
            if stage > 0:
                found.append((stage - 1, chunk, microbatch, True))
        else:
            found.append((stage, chunk, microbatch, True))
            found.append((stage + 1, chunk, microbatch, False))
        return [key for key in found if key in self.there]

    def _run(self) -> None:
        """Starts of all slots; one whose needs never come in this order begins early, and is marked."""
        ends: dict[Key, int] = {}
        place = dict.fromkeys(range(len(self.orders)), 0)
        free = dict.fromkeys(range(len(self.orders)), 0)
        shown = {self._key(slot) for _, order in self.orders for slot in order}
        left = sum(len(order) for _, order in self.orders)
        while left:
            ready: list[tuple[int, int]] = []
            for row, (_, order) in enumerate(self.orders):
                if place[row] < len(order):
                    needs = [key for key in self._needs(order[place[row]]) if key in shown]
                    if all(key in ends for key in needs):
                        ready.append((max([free[row], *(ends[key] for key in needs)]), row))
            if not ready:
                # Everybody waits: the first slot that runs too early goes on, so that the rest can be seen.
                row = min((free[row], row) for row, (_, order) in enumerate(self.orders) if place[row] < len(order))[1]
                self.early.add(self.orders[row][1][place[row]].task)
                ready.append((free[row], row))
            start, row = min(ready)
            slot = self.orders[row][1][place[row]]
            self.start[slot.task] = start
            free[row] = ends[self._key(slot)] = start + self._length(slot)
            place[row] += 1
            left -= 1

    def _length(self, slot: Slot) -> int:
        return 1 if slot.forward else 2

    def draw(self) -> None:
        picture = self.picture
        total = max(
            (self.start[slot.task] + self._length(slot) for _, order in self.orders for slot in order), default=0
        )
        unit = UNIT if total <= 40 else max(8.0, 1200.0 / total)
        most: dict[int, int] = {}
        for row, (rank, order) in enumerate(self.orders):
            y = TOP + row * ROW
            stages = sorted({slot.stage for slot in order})
            picture.text(0, y + HIGH / 2 - 7, f"rank {rank}", bold=True)
            picture.text(0, y + HIGH / 2 + 8, f"stage {', '.join(map(str, stages[:4]))}", tone="muted", size=10)
            picture.rect(
                LEFT, y, total * unit, HIGH, fill="raised", stroke="none", hatch="muted", says="bubble", faded=True
            )
            live: set[tuple[int, int, int]] = set()
            peak = 0
            for slot in order:
                self._slot(slot, y, unit)
                if slot.forward:
                    live.add(slot.key)
                else:
                    live.discard(slot.key)
                peak = max(peak, len(live))
                if unit >= 20:
                    picture.text(
                        LEFT + (self.start[slot.task] + self._length(slot) / 2) * unit,
                        y + HIGH + 9,
                        str(len(live)),
                        anchor="middle",
                        size=9,
                        tone="muted",
                    )
            most[rank] = peak
            self._bound(rank, order, peak, y, total * unit)
        picture.text(LEFT, 8, "time →  (F one unit, B two; below each slot: live microbatches)", tone="muted", size=11)
        self._words(total)

    def _slot(self, slot: Slot, y: float, unit: float) -> None:
        x, wide = LEFT + self.start[slot.task] * unit, self._length(slot) * unit
        wrong = slot.task in self.marked or slot.task in self.early
        letter = "F" if slot.forward else "B"
        tone = "axis-0" if slot.forward else "axis-4"
        chunk = f".{slot.chunk}" if self.chunks > 1 else ""
        words = f"{letter}{slot.microbatch}{chunk}"
        self.picture.rect(
            x + 0.5, y, max(1.5, wide - 1), HIGH, fill=tone, stroke="bad" if wrong else "muted", thick=3 if wrong else 1, round=2,
            says=f"{words} on stage {slot.stage}: {self.case.task_name(slot.task)}", key=self.case.task_key(slot.task),
        )  # fmt: skip
        if wide > 18:
            self.picture.text(x + wide / 2, y + HIGH / 2, words, anchor="middle", size=11, bold=True, tone=f"on-{tone}")

    def _bound(self, rank: int, order: list[Slot], peak: int, y: float, wide: float) -> None:
        """Live microbatches against what 1F1B (or interleaving) holds at most."""
        stage = min(slot.stage for slot in order)
        limit = next(
            (
                item.value
                for item in self.case.store.program.limits
                if item.name == "inflight" and item.rank in (None, rank)
            ),
            None,
        )
        bound = limit if limit is not None else self._most(stage)
        over = self.case.code == "pipeline.inflight" and peak > bound
        planned = limit is not None or "schedule" in self.case.store.program.attributes or over
        words = f"{peak} live" + (f", {'limit' if limit is not None else 'schedule'} {bound}" if planned else "")
        self.picture.text(LEFT + wide + 8, y + HIGH / 2, words, size=11, tone="bad" if over else "muted", bold=over)
        allowed = f"; {'the limit' if limit is not None else 'the schedule'} allows {bound}" if planned else ""
        self.picture.fact(f"rank {rank}", f"at most {peak} live microbatches{allowed}", tone="bad" if over else "")

    def _most(self, stage: int) -> int:
        """Live microbatches that the schedule allows a stage: all of them where all forwards come first."""
        if str(self.case.store.program.attributes.get("schedule", "")).lower() == "gpipe":
            return self.microbatches
        return most_inflight(
            stages=self.stages, microbatches=self.microbatches, stage=min(stage, self.stages - 1), chunks=self.chunks
        )

    def _words(self, total: int) -> None:
        picture, case = self.picture, self.case
        busy = [sum(self._length(slot) for slot in order) for _, order in self.orders]
        ideal = (self.stages - 1) / (self.chunks * self.microbatches)
        share = (total - max(busy)) / max(busy) if busy and max(busy) else 0.0
        picture.fact(
            "stages, microbatches",
            f"p = {self.stages}, m = {self.microbatches}{f', {self.chunks} chunks a rank' if self.chunks > 1 else ''}",
        )
        formula = "(p − 1)/m" if self.chunks == 1 else "(p − 1)/(v·m)"
        picture.fact("bubble", f"{share:.2f} of the work of the busiest rank; {formula} = {ideal:.2f} at best")
        picture.explain("box", "axis-0", "forward")
        picture.explain("box", "axis-4", "backward")
        picture.explain("hatch", "muted", f"bubble: {formula} = {ideal:.2f} at best")
        names = [case.task_name(task) for task in case.tasks[:2]]
        match case.code:
            case "pipeline.order":
                picture.says = f"{' and '.join(names)} (red) stand in the wrong order on their way."
            case "pipeline.inflight":
                picture.says = "A rank holds more microbatches alive than it may (counted below its slots)."
            case "pipeline.microbatch_lost":
                picture.says = f"{names[0] if names else 'A slot'} has no counterpart: its microbatch is lost."
            case "pipeline.stage_map":
                picture.says = "A stage or layer does not lie on one set of ranks."
            case "pipeline.warmup":
                picture.says = "A rank begins its steady state with too few or too many forwards."
            case "accumulate.early_reduce":
                picture.says = "The gradients are reduced before the last backward of their stage."
                self._syncs()
            case _:
                picture.says = f"The bubble takes {share:.2f} of the work of the busiest rank."

    def _syncs(self) -> None:
        """The task that reduces too early, and the backwards that come after it."""
        task = self.case.task
        last = max((slot.task for slot in self.slots if not slot.forward), default=-1)
        self.picture.fact(self.case.task_name(task), "reduces the gradients", self.case.task_key(task), "bad")
        if last >= 0:
            self.picture.fact("last backward", self.case.task_name(last), self.case.task_key(last))
