"""Runs the steps of a plan on the ranks of one process: local steps here, communication through a fabric.

Control flow follows the data: ranks that leave a loop or take another branch than the rest go their own way, and a
collective that then misses some of its ranks is an error that names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, assert_never, cast, runtime_checkable

import numpy as np

from dtir.execute.applied import Applied
from dtir.execute.backends.base import Fabric, Traffic
from dtir.execute.checked import Checker, GatheringFabric
from dtir.execute.dtypes import Array, DtypeError, numpy_dtype
from dtir.execute.exchange import Exchange
from dtir.execute.hlo import Context, Devices, HloError
from dtir.execute.local import LocalOp, RunContext, UnknownOperation, check_shapes, compile_step
from dtir.execute.placement import PlacementError
from dtir.execute.record import RunRecord
from dtir.execute.semantics import ExchangeError
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.execute.values import AbsentError, Held, Slab, at, merge, stack, take
from dtir.ir.tasks import Branch, Call, Loop
from dtir.ops import OpError
from dtir.schema.diagnostics import Diagnostic


class ExecutionError(RuntimeError):
    """A step failed while it ran.

    Args:
        message: what went wrong.
        step: the step.
        code: of the finding that it becomes.
    """

    def __init__(self, message: str, step: Step, code: str = "run.failed") -> None:
        super().__init__(message)
        self.step = step
        self.code = code
        self.record: RunRecord | None = None
        """What was recorded until then, where somebody records."""


Observer: TypeAlias = Callable[[Step, Sequence[int], int, int, "Traffic | None"], None]
"""Told of every step that is done: the step, its ranks, start and end in nanoseconds of the fabric's clock, what was sent."""

_FAILURES = (
    HloError, OpError, DtypeError, PlacementError, UnknownOperation, AbsentError, ValueError, TypeError, LookupError,
    ArithmeticError, NotImplementedError, MemoryError,
)  # fmt: skip
"""What an operation raises that its operands do not fit, the array module included."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a session runs.

    Args:
        seed: root of all random numbers.
        skip_local: run communication only; results of local steps are filled by a rule.
        check: compare collectives with the reference, in a repetition of its own before the others.
        barriers: wait for all ranks before every communication step (timing `isolated`).
        observed: which steps the observer is told of: ``communication`` or ``all``.
    """

    seed: int = 0
    skip_local: bool = False
    barriers: bool = False
    observed: str = "all"
    check: bool = False


DEFAULT_OPTIONS = Options()


@runtime_checkable
class ReadyFabric(Protocol):
    """A fabric that can get collectives ready, so that nothing but the exchange itself falls into its time."""

    def ready(
        self, request: Exchange, operands: Sequence[Held], ranks: Sequence[int]
    ) -> tuple[tuple[Held, ...], Callable[[], object]] | None:
        """The results before they are there, and the call that brings them and returns when it has; None where that
        cannot be done: then `exchange` is asked."""
        ...


class Session:
    """A prepared plan on the ranks of this process.

    Args:
        plan: the plan.
        fabric: communication, and the ranks of this process.
        options: how to run.
        xp: the array module.
        observer: told of every step.

    Raises:
        UnknownOperation: a local step has no evaluation (and local steps are not skipped).
    """

    def __init__(
        self,
        plan: ExecPlan,
        fabric: Fabric,
        options: Options = DEFAULT_OPTIONS,
        xp: Any = np,
        observer: Observer | None = None,
    ) -> None:
        self.xp = xp
        self.plan = plan
        self.local_ranks: tuple[int, ...] = tuple(fabric.ranks)
        self._fabric = fabric
        self._ready = fabric.ready if isinstance(fabric, ReadyFabric) else None
        self.checker: Checker | None = None
        """Compares exchanges while it is there; what it does is part of no measured time."""
        self._options = options
        self._observer = observer
        self._here = frozenset(self.local_ranks)
        self._all_here = len(self.local_ranks) == plan.ranks
        self._own: dict[int, tuple[int, ...]] = {}
        self._local: dict[int, LocalOp] = {}
        self._applied = Applied(plan, self._local, xp, options.seed)
        devices = Devices(plan.attribute("hlo.replicas", 1), plan.attribute("hlo.partitions", plan.ranks))
        self._context = RunContext(
            Context(xp, self.local_ranks, devices, self._applied.apply, self._applied.reducer, options.seed),
            options.seed,
        )
        self._values: dict[int, Held] = {}
        self._numbers = {slot.name: number for number, slot in enumerate(plan.main.slots)}
        if not options.skip_local:
            for scope in plan.scopes:
                for step in scope.steps:
                    if step.kind is StepKind.LOCAL:
                        self._local[step.index] = compile_step(plan, scope, step)

    # -- the protocol of sessions ---------------------------------------------------------------------------------------

    def load(self, value: str, rank: int, data: Array) -> None:
        """Give a rank its part of an input, by the name of the value.

        Raises:
            KeyError: the program has no such value.
        """
        self.load_slot(self._numbers[value], Slab((rank,), self.xp.asarray(data)[None]))

    def load_slot(self, slot: int, held: Held) -> None:
        """Give ranks their parts of an input, by the number of its slot."""
        old = self._values.get(slot)
        if old is not None:
            kept = [rank for rank in old.ranks if rank not in set(held.ranks)]
            held = merge([take(old, tuple(kept)), held], self.xp) if kept else held
        self._values[slot] = held

    def execute(self, step: Step) -> None:
        """Run one step of the program's own list.

        Raises:
            ExecutionError: it fails.
        """
        self._step(self.plan.main, step, self._values, self._here)

    def remarks(self) -> tuple[Diagnostic, ...]:
        """What people should know of how the steps ran; nothing here."""
        return ()

    def sync(self) -> None:
        """Wait until everything that was enqueued is done."""
        self._fabric.sync()

    def read(self, value: str, rank: int) -> Array:
        """A rank's part of a value that was kept, by name.

        Raises:
            KeyError: there is no such value, or it was freed.
            AbsentError: the rank holds nothing of it.
        """
        return at(self._values[self._numbers[value]], rank)

    def read_slot(self, slot: int) -> Held:
        """What the ranks of this process hold of a value that was kept.

        Raises:
            KeyError: it was freed.
        """
        if slot not in self._values and slot in self.plan.main.outputs:
            return self._absent(self.plan.main, slot)
        return self._values[slot]

    def make_checker(self) -> Checker:
        """What compares the exchanges of this session's ranks with the reference."""
        return Checker(self.plan.ranks, self._fabric if isinstance(self._fabric, GatheringFabric) else None)

    def start(self) -> None:
        """A repetition begins; inputs are loaded."""
        self._fabric.sync()
        self._fabric.start()

    def reset(self) -> None:
        """Forget all values, for another repetition."""
        self._values = {}

    def close(self) -> None:
        """Give back what the session holds."""
        self._values = {}
        self._fabric.close()

    # -- steps ----------------------------------------------------------------------------------------------------------

    def _ranks_of(self, step: Step, active: frozenset[int]) -> tuple[int, ...]:
        if active is self._here:
            found = self._own.get(id(step.ranks))
            if found is None:
                if self._all_here and len(step.ranks) == self.plan.ranks:
                    found = self.local_ranks
                else:
                    found = tuple(rank for rank in step.ranks if rank in active)
                self._own[id(step.ranks)] = found
            return found
        return tuple(rank for rank in step.ranks if rank in active)

    def _step(self, scope: ScopePlan, step: Step, values: dict[int, Held], active: frozenset[int]) -> None:
        ranks = self._ranks_of(step, active)
        if ranks:
            try:
                operands = self._operands(scope, step, values, ranks)
                communicates = step.kind in (StepKind.EXCHANGE, StepKind.MOVE)
                if communicates and self._options.barriers:
                    self._fabric.barrier(step)
                self._fabric.begin(step)
                ready = self._ready(step.exchange, operands, ranks) if self._ready and step.exchange else None
                if ready is not None:
                    results, call = ready
                    start = self._fabric.now_ns()
                    call()
                    end = self._fabric.now_ns()
                else:
                    start = self._fabric.now_ns()
                    results = self._run(scope, step, operands, ranks)
                    if self._observer is not None:
                        self._fabric.sync()
                    end = self._fabric.now_ns()
                sent = self._fabric.end(step) if communicates else None
                if self._observer is not None:
                    self._observer(step, ranks, start, end, sent)
                if step.kind is not StepKind.ORDER:
                    check_shapes(step, [scope.slots[number] for number in step.outputs], results)
                if self.checker is not None and step.exchange is not None:
                    self.checker.check(step, ranks, operands, results, self._combined(step.exchange))
            except ExecutionError:
                raise
            except ExchangeError as error:
                code = "run.deadlock" if "never arrive" in str(error) else "run.failed"
                raise ExecutionError(str(error), step, code) from error
            except _FAILURES as error:
                raise ExecutionError(str(error) or type(error).__name__, step) from error
            for number, held in zip(step.outputs, results, strict=True):
                values[number] = held
        for number in step.frees:
            values.pop(number, None)

    def _operands(self, scope: ScopePlan, step: Step, values: Mapping[int, Held], ranks: Sequence[int]) -> list[Held]:
        if step.kind is StepKind.ORDER:
            return []
        if step.kind is StepKind.MOVE or (step.exchange is not None and step.exchange.roots):
            # Not everybody who takes part needs to hold the operand.
            return [values[number] if number in values else self._absent(scope, number) for number in step.inputs]
        return [take(values[number], ranks) for number in step.inputs]

    def _absent(self, scope: ScopePlan, number: int) -> Held:
        """What this process holds of a value that lives on ranks of others: nothing, of the right type."""
        slot = scope.slots[number]
        return Slab((), self.xp.empty((0, *(slot.shape or ())), numpy_dtype(slot.value.type.dtype)))

    def _run(self, scope: ScopePlan, step: Step, operands: Sequence[Held], ranks: tuple[int, ...]) -> tuple[Held, ...]:
        body = step.task.body
        match step.kind:
            case StepKind.LOCAL:
                if self._options.skip_local:
                    return self._filled(scope, step, ranks)
                return self._local[step.index](self._context, operands, ranks)
            case StepKind.EXCHANGE:
                assert step.exchange is not None
                return self._fabric.exchange(step.exchange, operands, ranks, self._combined(step.exchange))
            case StepKind.MOVE:
                return tuple(
                    self._fabric.move(moves, operand, ranks)
                    for moves, operand in zip(step.moves, operands, strict=True)
                )
            case StepKind.ORDER:
                return ()
            case StepKind.CALL:
                region = self.plan.regions[cast("Call", body).region]
                return tuple(self._enter(region, operands, ranks))
            case StepKind.LOOP:
                return self._loop(step, cast("Loop", body), operands, ranks)
            case StepKind.BRANCH:
                return self._branch(step, cast("Branch", body), operands, ranks)
            case _:
                assert_never(step.kind)

    def _filled(self, scope: ScopePlan, step: Step, ranks: Sequence[int]) -> tuple[Held, ...]:
        """Results of a local step that is left out: small integers that differ from rank to rank."""
        results: list[Held] = []
        for number in step.outputs:
            slot = scope.slots[number]
            dtype = numpy_dtype(slot.value.type.dtype)
            arrays: list[Array] = []
            for rank in ranks:
                shape = slot.shape if slot.shape is not None else slot.placement.local_shape(rank)
                count = int(np.prod(shape, dtype=np.int64))
                ramp = (np.arange(count) + rank + self._options.seed) % 7
                arrays.append(self.xp.asarray((ramp % 2 if dtype.kind == "b" else ramp).astype(dtype).reshape(shape)))
            results.append(stack(ranks, arrays, self.xp))
        return tuple(results)

    def _combined(self, request: Exchange) -> Callable[[Array, Array], Array] | None:
        """The computation of a custom reduction; None for the others."""
        return self._applied.combine(request.computation) if request.computation is not None else None

    # -- regions --------------------------------------------------------------------------------------------------------

    def _enter(self, scope: ScopePlan, operands: Sequence[Held], ranks: Sequence[int]) -> list[Held]:
        values = dict(zip(scope.inputs, operands, strict=True))
        active = self._here if len(ranks) == len(self._here) else frozenset(ranks)
        for step in scope.steps:
            self._step(scope, step, values, active)
        return [take(values[number], ranks) for number in scope.outputs]

    def _loop(self, step: Step, body: Loop, operands: Sequence[Held], ranks: tuple[int, ...]) -> tuple[Held, ...]:
        region = self.plan.regions[body.body]
        state = list(operands)
        if body.condition is None or (self._options.skip_local and body.trip_count is not None):
            for _ in range(body.trip_count or 0):
                state = self._enter(region, state, ranks)
            return tuple(state)
        if self._options.skip_local:
            # How often it runs is up to data that are not computed: once, so that its communication is seen.
            return tuple(self._enter(region, state, ranks))
        condition = self.plan.regions[body.condition]
        left: list[tuple[tuple[int, ...], list[Held]]] = []
        self._fabric.enter(step)
        while True:
            verdict = self._verdict(step, self._enter(condition, state, ranks), ranks)
            self._fabric.part(step, ranks, [int(goes) for goes in verdict])
            going = tuple(rank for rank, goes in zip(ranks, verdict, strict=True) if goes)
            if len(going) < len(ranks):
                stops = tuple(rank for rank, goes in zip(ranks, verdict, strict=True) if not goes)
                left.append((stops, [take(held, stops) for held in state]))
                state = [take(held, going) for held in state]
                ranks = going
            if not ranks:
                break
            self._fabric.follow(step, 1)
            state = self._enter(region, state, ranks)
        self._fabric.leave(step)
        return tuple(merge([held[number] for _, held in left], self.xp) for number in range(len(operands)))

    def _verdict(self, step: Step, results: Sequence[Held], ranks: Sequence[int]) -> list[bool]:
        if len(results) != 1 or not isinstance(results[0], Slab) or results[0].array.size != len(ranks):
            raise ExecutionError("a condition gives one predicate a rank", step)
        return [bool(item) for item in results[0].array.reshape(-1)]

    def _branch(self, step: Step, body: Branch, operands: Sequence[Held], ranks: tuple[int, ...]) -> tuple[Held, ...]:
        selector = operands[0]
        if self._options.skip_local:
            choices = [0] * len(ranks)
        elif not isinstance(selector, Slab) or selector.array.size != len(ranks):
            raise ExecutionError("a branch is chosen by one number a rank", step)
        else:
            chosen = selector.array.reshape(-1)
            last = len(body.regions) - 1
            if chosen.dtype.kind == "b":
                choices = [0 if item else min(1, last) for item in chosen]
            else:
                # An index outside means the last branch.
                choices = [int(item) if 0 <= int(item) <= last else last for item in chosen]
        firsts = [1]
        for count in body.operand_counts:
            firsts.append(firsts[-1] + count)
        parts: list[list[Held]] = []
        self._fabric.enter(step)
        self._fabric.part(step, ranks, choices)
        for number in sorted(set(choices)):
            self._fabric.follow(step, number)
            mine = tuple(rank for rank, choice in zip(ranks, choices, strict=True) if choice == number)
            mine = ranks if len(mine) == len(ranks) else mine
            given = [take(held, mine) for held in operands[firsts[number] : firsts[number + 1]]]
            parts.append(self._enter(self.plan.regions[body.regions[number]], given, mine))
        self._fabric.leave(step)
        return tuple(merge([part[number] for part in parts], self.xp) for number in range(len(step.outputs)))
