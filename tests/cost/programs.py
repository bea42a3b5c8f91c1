"""Small programs whose schedule can be worked out on paper, and a machine of round numbers."""

from __future__ import annotations

from dtir.cost.profile import Level, MachineProfile, Rates, Source, Standing
from dtir.cost.schedule import Options, Schedule, make_schedule
from dtir.cost.spans import Stream
from dtir.ir import (
    AllReduce,
    Branch,
    Call,
    Collective,
    DistributedTaskIR,
    Loop,
    NodeId,
    PeerTransfer,
    PointToPoint,
    ProgramBuilder,
    ReductionKind,
)
from dtir.ir.scope_builder import ScopeBuilder

MACHINE = MachineProfile(
    "paper",
    "round numbers",
    Source(Standing.MODEL, "made up", "2026-01-01"),
    levels=(Level("net", None, 1.0, 0.0),),
    rates=Rates({"any": 1.0}, {"any": 1.0}, 1.0),
)
"""A message takes 1 s whatever its size."""


def schedule(program: DistributedTaskIR, *, machine: MachineProfile = MACHINE, **options: object) -> Schedule:
    """The schedule of a program; keyword arguments are those of `Options`."""
    program.require_valid()
    return make_schedule(program, machine, Options(**options)).or_raise()  # type: ignore[arg-type]


class Sketch:
    """A program in a few words: every task makes one value, `after` names tasks.

    >>> sketch = Sketch(pp=2)
    >>> sketch.work("a", ranks=(0,)); sketch.send("s", 0, 1, after=("a",))
    """

    def __init__(self, scope: ScopeBuilder | None = None, **axes: int) -> None:
        self.build = scope or ProgramBuilder("sketch", axes=axes)
        self.tasks: dict[str, NodeId] = {}
        if scope is None:
            self.build.input("unused", (4,), "f32")  # a program has at least one value

    def _add(self, name: str, after: tuple[str, ...], **fields: object) -> None:
        value = self.build.value(f"{name}.out", (4,), "f32")
        fields.setdefault("ranks", tuple(range(self.build.mesh.size)))
        self.tasks[name] = self.build.task(
            f"demo.{name}", (), (value,), name=name, after=[self.tasks[item] for item in after], **fields
        )  # type: ignore[arg-type]

    def work(self, name: str, *, after: tuple[str, ...] = (), **fields: object) -> None:
        self._add(name, after, **fields)

    def reduce(self, name: str, *, after: tuple[str, ...] = (), groups: tuple = (), **fields: object) -> None:
        ranks = tuple(sorted(rank for group in groups for rank in group)) or tuple(range(self.build.mesh.size))
        spec = AllReduce(ranks, 64, ReductionKind.SUM, groups=groups)
        self._add(name, after, body=Collective(spec), ranks=ranks, **fields)

    def send(self, name: str, source: int, destination: int, *, after: tuple[str, ...] = ()) -> None:
        body = PointToPoint(PeerTransfer(source, destination, 64))
        self._add(name, after, body=body, ranks=tuple(sorted((source, destination))))

    def region(self, name: str) -> Sketch:
        assert isinstance(self.build, ProgramBuilder)
        return Sketch(self.build.region(name))

    def loop(self, name: str, body: Sketch, trips: int | None, *, after: tuple[str, ...] = ()) -> None:
        self.tasks[name] = self.build.task(
            "demo.loop", (), (), name=name, body=Loop(body.build.id, None, trips), after=[self.tasks[i] for i in after]
        )  # type: ignore[union-attr]

    def call(self, name: str, body: Sketch, *, after: tuple[str, ...] = ()) -> None:
        self.tasks[name] = self.build.task(
            "demo.call", (), (), name=name, body=Call(body.build.id), after=[self.tasks[i] for i in after]
        )  # type: ignore[union-attr]

    def branch(self, name: str, *bodies: Sketch, after: tuple[str, ...] = ()) -> None:
        selector = self.build.input(f"{name}.selector", (), "s32")
        self.tasks[name] = self.build.task(
            "demo.branch",
            (selector,),
            (),
            name=name,
            body=Branch(tuple(body.build.id for body in bodies), (0,) * len(bodies)),  # type: ignore[union-attr]
            after=[self.tasks[i] for i in after],
        )

    def done(self) -> DistributedTaskIR:
        assert isinstance(self.build, ProgramBuilder)
        return self.build.build()


def times(made: Schedule) -> dict[tuple[str, int], tuple[float, float]]:
    """(name, rank) to (start, end) of the first span of every task, for every rank."""
    names = {number: task.name for number, _, task in made.numbered()}
    found: dict[tuple[str, int], tuple[float, float]] = {}
    spans = made.spans
    for place in range(len(spans)):
        if spans.stream[place] == Stream.BOTH:
            continue
        for one in spans.classes[place]:
            for rank in made.classes.ranks_of(one):
                found.setdefault((names[spans.task[place]], rank), (spans.start[place], spans.end[place]))
    return found
