"""Ranks by time: what each issues, who waits for whom, and what is never reached (``order.*``, ``deadlock.*``, ``p2p.*``)."""

from __future__ import annotations

from dtir.analysis.rendezvous import Wait
from dtir.ir.collectives import CollectivePermute
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, PointToPoint
from dtir.verify.lanes import Lane, LaneOp, Lanes, LaneStep, Reach, lanes_of
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Choice, Picture, kept, listed
from dtir_app.kinds import KINDS
from dtir_app.text import ranks_text

TOP, COLUMN, ROW, WIDE, HIGH = 26.0, 128.0, 62.0, 96.0, 34.0
PLAIN_LEFT, LOOP_LEFT = 78.0, 196.0
"""Room for the ranks' names, and for the words of waits that lead upwards."""
MOST_TRANSFERS = 8
MOST_PARTICIPANTS = 500_000
"""Participants of a program that is laid out by rank while somebody waits."""


def draw(case: Case) -> Picture:
    """The lanes of the ranks that the finding speaks of."""
    picture = Picture("lane")
    program = case.store.program
    first = (
        "buffered" if case.code.startswith("deadlock.") and case.code != "deadlock.buffer_dependent" else "rendezvous"
    )
    order = [first, "buffered" if first == "rendezvous" else "rendezvous"]
    mode = kept(case.options, "sends", order)
    picture.choices.append(
        Choice("sends", "a send", (("rendezvous", "waits for its receiver"), ("buffered", "goes on at once")), mode)
    )
    tasks = [task for task in case.tasks if task < len(program.tasks)]
    if participants(program) > MOST_PARTICIPANTS:
        picture.says = "The program has too many participants to be laid out by rank."
        return picture
    lanes = lanes_of(program, known=case.known.lanes, ranks=case.ranks, tasks=tasks, buffered=mode == "buffered")
    if lanes is None or not lanes.lanes:
        picture.says = (
            "The program communicates nowhere in its own task list."
            if lanes
            else "The program has too many participants to be laid out by rank."
        )
        return picture
    _Lanes(case, picture, lanes, set(tasks)).draw()
    return picture


def participants(program: DistributedTaskIR) -> int:
    """Participants of all communication, at least; sets of ranks are not written out."""
    total = 0
    for task in program.tasks:
        body = task.body
        if isinstance(body, Collective):
            spec = body.spec
            total += len(spec.pairs) if isinstance(spec, CollectivePermute) else len(spec.participants)
        elif isinstance(body, PointToPoint):
            total += 2
        if total > MOST_PARTICIPANTS:
            break
    return total


class _Lanes:
    def __init__(self, case: Case, picture: Picture, lanes: Lanes, tasks: set[int]) -> None:
        self.case, self.picture, self.all = case, picture, lanes
        self.tasks = tasks if case.finding is not None else set[int]()
        self.row = {lane.rank: TOP + number * ROW for number, lane in enumerate(lanes.lanes)}
        self.base = min((step.column for lane in lanes.lanes for step in lane.steps), default=0)
        self.left = LOOP_LEFT if lanes.circle else PLAIN_LEFT
        self.places: dict[tuple[int, int], tuple[float, float]] = {}
        self.links = {(link.rank, link.op): link for link in lanes.circle}

    def draw(self) -> None:
        picture = self.picture
        right = self.left + COLUMN * (
            1 + max((s.column for lane in self.all.lanes for s in lane.steps), default=0) - self.base
        )
        for lane in self.all.lanes:
            self._lane(lane, right)
        self._bars()
        for lane in self.all.lanes:
            for step in lane.steps:
                self._step(step)
            self._gone(lane, right)
        self._circle()
        picture.text(self.left, 8, "time →", tone="muted", size=11)
        self._words()

    def _lane(self, lane: Lane, right: float) -> None:
        y = self.row[lane.rank] + HIGH / 2
        self.picture.text(0, y, f"rank {lane.rank}", bold=True)
        self.picture.line([(self.left - 8, y), (right, y)], tone="muted", thick=1)
        if lane.before:
            self.picture.text(self.left - 6, y + HIGH / 2 + 8, f"… {lane.before} before", tone="muted", size=10)
        if lane.after:
            self.picture.text(right, y + HIGH / 2 + 8, f"{lane.after} more …", tone="muted", size=10, anchor="end")

    def _x(self, column: int) -> float:
        return self.left + COLUMN * (column - self.base)

    def _bars(self) -> None:
        """Each operation as a line through its members; where members issue it at other places, lines cross."""
        for op in self.all.ops.values():
            points: list[tuple[float, float]] = []
            for lane in self.all.lanes:
                for step in lane.steps:
                    if op.op in step.ops:
                        points.append((self._x(step.column) + WIDE / 2, self.row[lane.rank] + HIGH / 2))
            if len(points) < 2:
                continue
            self.picture.line(
                points,
                tone="muted" if op.done else "bad" if self._asked(op) else "warn",
                thick=3 if op.done else 2,
                dashed=not op.done,
                faded=op.done,
                says=f"{self._name(op)}: {'takes place' if op.done else 'never takes place'}",
            )

    def _asked(self, op: LaneOp) -> bool:
        return op.task in self.tasks

    def _name(self, op: LaneOp) -> str:
        return self.case.task_name(op.task)

    def _step(self, step: LaneStep) -> None:
        x, y = self._x(step.column), self.row[step.rank]
        if not step.ops:
            self.picture.rect(
                x, y + 6, WIDE, HIGH - 12, fill="raised", dashed=True, round=3, says="waits for what it issued"
            )
            self.picture.text(x + WIDE / 2, y + HIGH / 2, "wait", anchor="middle", tone="muted", size=11)
            return
        shown = step.ops[:2]
        high = HIGH / len(shown)
        for number, op_number in enumerate(shown):
            op = self.all.ops[op_number]
            kind = KINDS[int(self.case.store.tasks.kind[op.task])]
            self.places[step.rank, op_number] = (x, y + number * high)
            self.picture.node(
                x,
                y + number * high,
                WIDE,
                high - (2 if len(shown) > 1 else 0),
                family=int(kind.family),
                code=f"{kind.code}{self._direction(op, step.rank)}"
                if len(shown) == 1
                else f"{kind.code} {self._name(op)}",
                text=self._name(op) if len(shown) == 1 else "",
                key=self.case.task_key(op.task),
                faded=step.reach is Reach.NEVER,
                tone="bad" if step.reach is Reach.STUCK else "",
                note=f"rank {step.rank}: {self._name(op)}, {step.reach.value}",
            )
        if len(step.ops) > len(shown):
            self.picture.text(
                x + WIDE / 2, y + HIGH + 7, f"+{len(step.ops) - len(shown)} in one step", anchor="middle", size=10
            )

    def _direction(self, op: LaneOp, rank: int) -> str:
        body = self.case.record(op.task).body
        if not isinstance(body, PointToPoint):
            return ""
        return f" → {body.spec.destination_rank}" if body.spec.source_rank == rank else f" ← {body.spec.source_rank}"

    def _gone(self, lane: Lane, right: float) -> None:
        """What a rank never issues although others wait for it there."""
        x = right
        for op in self.all.ops.values():
            if lane.rank in op.absent:
                y = self.row[lane.rank]
                self.picture.rect(
                    x, y, WIDE, HIGH, dashed=True, stroke="bad", thick=2, round=3, says="never issued here"
                )
                self.picture.text(x + WIDE / 2, y + HIGH / 2 - 7, "never issues", anchor="middle", tone="bad", size=11)
                self.picture.text(
                    x + WIDE / 2, y + HIGH / 2 + 8, self._name(op), anchor="middle", mono=True, size=11, most=WIDE - 8
                )
                for rank in op.members:
                    place = self.places.get((rank, op.op))
                    if place is not None:
                        self._arrow(place, (x, y), f"waits for rank {lane.rank}", 0, 1)
                x += COLUMN

    def _circle(self) -> None:
        """The circle of waits as a closed red loop, each link with its words."""
        stuck = {
            step.rank: (self._x(step.column), self.row[step.rank])
            for lane in self.all.lanes
            for step in lane.steps
            if step.reach is Reach.STUCK
        }
        for number, link in enumerate(self.all.circle):
            here, there = stuck.get(link.rank), stuck.get(link.waits_for)
            if here is not None and there is not None:
                self._arrow(here, there, f"waits for rank {link.waits_for}", number, len(self.all.circle))

    def _arrow(
        self, here: tuple[float, float], there: tuple[float, float], words: str, number: int, count: int
    ) -> None:
        down = there[1] > here[1]
        far = abs(there[1] - here[1]) / ROW
        bulge = 24 + 9 * far
        if down:
            start, end = (here[0] + WIDE, here[1] + HIGH / 2 + 5), (there[0] + WIDE, there[1] + HIGH / 2 - 5)
            side = max(start[0], end[0]) + bulge
        else:
            start, end = (here[0], here[1] + HIGH / 2 - 5), (there[0], there[1] + HIGH / 2 + 5)
            side = min(start[0], end[0]) - bulge
        if abs(there[0] - here[0]) > WIDE:
            start, end = (here[0] + WIDE, here[1] + HIGH / 2), (there[0], there[1] + HIGH / 2)
            middle = (start[0] + end[0]) / 2
            self.picture.line(
                [start, (middle, start[1]), (middle, end[1]), end],
                tone="bad",
                thick=2.6,
                arrow=True,
                curve=True,
                says=words,
            )
            self.picture.text(middle + 6, (start[1] + end[1]) / 2, words, tone="bad", size=11, bold=True)
            return
        self.picture.line(
            [start, (side, start[1]), (side, end[1]), end], tone="bad", thick=2.6, arrow=True, curve=True, says=words
        )
        at = start[1] + (end[1] - start[1]) * (0.34 if count > 2 and far > 1.5 else 0.5)
        inner = min(start[0], end[0]) if not down else max(start[0], end[0])
        label = inner + (0.75 * (side - inner) + (7 if down else -7))
        self.picture.text(label, at, words, tone="bad", size=11, bold=True, anchor="start" if down else "end")

    # -- words ---------------------------------------------------------------------------------------------------------

    def _words(self) -> None:
        picture, lanes = self.picture, self.all
        how = "sends that go on at once" if lanes.buffered else "sends that wait for their receivers"
        if lanes.circle:
            picture.says = f"With {how}, {len(lanes.circle)} ranks wait for each other in a circle; what is faded is never reached."
        elif lanes.stuck:
            picture.says = f"With {how}, {lanes.stuck} of {lanes.rank_count} ranks never get through."
        else:
            crossed = self._crossed()
            picture.says = (
                f"With {how}, everybody gets through."
                + (" The dashed lines cross: ranks issue these operations in different orders." if crossed else "")
            )  # fmt: skip
        for link in lanes.circle:
            op = lanes.ops.get(link.op)
            name = self._name(op) if op is not None else "an operation"
            picture.fact(f"rank {link.rank}", f"waits in {name} for rank {link.waits_for}{_never(link)}", tone="bad")
        for op in lanes.ops.values():
            if op.absent:
                picture.fact(
                    self._name(op), f"never issued by rank {listed(op.absent)}", self.case.task_key(op.task), tone="bad"
                )
        issued: dict[str, list[int]] = {}
        for lane in lanes.lanes:
            issued.setdefault(" → ".join(self._step_words(step) for step in lane.steps), []).append(lane.rank)
        for words, ranks in issued.items():
            picture.fact(
                f"rank{'s' if len(ranks) > 1 else ''} {ranks_text(ranks)} issue{'s' if len(ranks) == 1 else ''}", words
            )
        if len(lanes.lanes) < lanes.rank_count:
            picture.fact("shown", f"{len(lanes.lanes)} of {lanes.rank_count:,} ranks that communicate")
        if not all(op.transfer for op in lanes.ops.values()):
            picture.explain("box", "family-1", "collective")
        if any(op.transfer for op in lanes.ops.values()):
            picture.explain("box", "family-2", "transfer (→ sends, ← receives)")
        if any(op.done for op in lanes.ops.values()):
            picture.explain("line", "muted", "takes place, in one moment on all its members")
        if lanes.stuck:
            picture.explain("line", "bad", "waits for")

    def _crossed(self) -> bool:
        order: dict[tuple[int, int], int] = {}
        for lane in self.all.lanes:
            ops = [op for step in lane.steps for op in step.ops]
            for number, op in enumerate(ops):
                for later in ops[number + 1 :]:
                    if (later, op) in order:
                        return True
                    order[op, later] = lane.rank
        return False

    def _step_words(self, step: LaneStep) -> str:
        names = " + ".join(self._name(self.all.ops[op]) for op in step.ops[:MOST_TRANSFERS]) or "wait"
        match step.reach:
            case Reach.DONE:
                return names
            case Reach.STUCK:
                return f"{names} (stuck)"
            case Reach.NEVER:
                return f"{names} (never reached)"


def _never(link: Wait) -> str:
    return ", which never issues it" if link.never else ""
