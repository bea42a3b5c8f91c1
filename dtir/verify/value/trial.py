"""One run of a case in one arithmetic: the undivided program and the ranks, task by task."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dtir.ir import ValueId
from dtir.ops.arithmetic import Arithmetic, Array
from dtir.verify.value.case import Case, CaseTask, CaseValue, Shape
from dtir.verify.value.data import Source
from dtir.verify.value.exchange import RouteError, read_route
from dtir.verify.value.held import Held, assemble, is_polynomial, replicas
from dtir.verify.value.locally import Unknown, is_random, run_ranks, run_whole
from dtir.verify.value.moves import run_move
from dtir.verify.value.reshard import run_reshard

_EXCHANGES = ("moe_dispatch", "moe_combine")


def _stays(task: CaseTask) -> bool:
    """True for communication that keeps the meaning of a value, whatever the undivided program is.

    Peer transfers are left out: in a ring they carry other blocks along, and an explicit undivided program then says what for.
    """
    if task.kind in ("reshard", "halo"):
        return True
    return task.kind == "move" and task.move is not None and task.move.kind != "permute"


def task_seed(seed: int, task: CaseTask) -> int:
    """A seed of its own for every task, the same on every rank and in the undivided program."""
    return zlib.crc32(f"{seed}:{task.name}:{task.index}".encode())


@dataclass(slots=True)
class Trial:
    """One run.

    Args:
        case: what is run.
        source: draws the inputs.
        whole: the specification of every value, as far as it is known.
        held: what ranks hold of every value, as far as it is known.
        routes: the route that every value went by.
        right: values whose meaning was found to be the specification.
    """

    case: Case
    source: Source
    whole: dict[ValueId, Array] = field(default_factory=dict[ValueId, Array])
    held: dict[ValueId, Held] = field(default_factory=dict[ValueId, Held])
    routes: dict[ValueId, tuple[int, ...]] = field(default_factory=dict[ValueId, tuple[int, ...]])
    right: set[ValueId] = field(default_factory=set[ValueId])

    @property
    def arithmetic(self) -> Arithmetic:
        return self.source.arithmetic

    @property
    def seed(self) -> int:
        return self.source.seed

    # -- the undivided program -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Draw the inputs, hand them out, and run the explicit undivided program where there is one."""
        for identifier in self.case.inputs:
            value = self.case.values[identifier]
            if value.fits(self.case.grid) is not None:
                continue
            if self.arithmetic.exact and not all(is_polynomial(kind) for kind in value.folds.values()):
                continue
            whole = self.source.whole(value)
            if whole is not None:
                self.whole[identifier] = whole
            self.held[identifier] = Held(self.source.scatter(value, whole, self.case.grid), ghosts=bool(value.halo))
        for task in self.case.oracle or ():
            self._specify(task, self.case.oracle_shapes)

    def _specify(self, task: CaseTask, shapes: Mapping[ValueId, Shape]) -> str | None:
        """Run a task undivided; why its results stay unknown, or None."""
        if any(operand not in self.whole for operand in task.operands):
            return None
        operands = [self.whole[operand] for operand in task.operands]
        if task.kind == "opaque":
            return None
        if task.kind != "local" or task.introduced:
            # Communication changes where things are and not what they are.
            for output, whole in zip(task.outputs, operands, strict=False):
                self.whole.setdefault(output, whole)
            return None
        if is_random(task) or not self._exact_enough(task):
            return None
        try:
            made = run_whole(
                task, self.arithmetic, operands, [shapes[output] for output in task.outputs], task_seed(self.seed, task)
            )
        except Unknown as error:
            return str(error)
        for output, whole in zip(task.outputs, made, strict=False):
            self.whole.setdefault(output, whole)
        return None

    def _follows(self, task: CaseTask) -> bool:
        """True for a local task of which an explicit undivided program says nothing, on operands that were found right.

        Its result means what the operator makes of them, unless ranks do different things on purpose.
        """
        return (
            task.kind == "local"
            and "c_by_rank" not in task.attributes
            and all(operand in self.right for operand in task.operands)
        )

    def _exact_enough(self, task: CaseTask) -> bool:
        return not self.arithmetic.exact or (task.operator is not None and task.operator.polynomial)

    # -- the ranks -----------------------------------------------------------------------------------------------------

    def step(self, task: CaseTask) -> str | None:
        """Run a task undivided and on the ranks; why something stays unknown, or None.

        Raises:
            TooLarge: an evaluation would need more than the judge spends.
        """
        reason = None
        if self.case.oracle is None or _stays(task) or self._follows(task):
            shapes = {output: self.case.values[output].shape for output in task.outputs}
            reason = self._specify(task, shapes)
        if reason is not None:
            return reason  # a call that does not fit its operator means nothing on ranks either
        made, why = self.run(task)
        self.held.update(made)
        if is_random(task):
            self._specify_random(task)
        self._follow_route(task)
        return why

    def run(self, task: CaseTask) -> tuple[dict[ValueId, Held], str | None]:
        """What ranks hold of a task's results, from what they hold of its operands; nothing where that is not known."""
        values = self.case.values
        if any(operand not in self.held for operand in task.operands) or not task.outputs:
            return {}, None
        operands = [values[operand] for operand in task.operands]
        held = [self.held[operand] for operand in task.operands]
        results = [values[output] for output in task.outputs]
        unfit = next((reason for value in results if (reason := value.fits(self.case.grid)) is not None), None)
        if unfit is not None:
            return {output: Held({}, fault=unfit) for output in task.outputs}, None
        try:
            made = self._run(task, operands, results, held)
        except (Unknown, RouteError) as error:
            return {}, str(error)
        return dict(zip(task.outputs, made, strict=False)), None

    def _run(
        self, task: CaseTask, operands: list[CaseValue], results: list[CaseValue], held: list[Held]
    ) -> Sequence[Held]:
        grid = self.case.grid
        if task.kind == "local":
            if not self._exact_enough(task):
                return ()
            return run_ranks(task, operands, results, held, grid, self.arithmetic, task_seed(self.seed, task))
        if task.kind == "control" or task.kind == "opaque" or len(operands) != len(results):
            return ()
        if self.arithmetic.exact and not self._exact_move(task, operands):
            return ()
        pairs = zip(operands, results, held, strict=True)
        if task.kind in ("reshard", "halo"):
            return [run_reshard(task, source, result, item, grid, self.arithmetic) for source, result, item in pairs]
        assert task.move is not None
        route = self._route_of(task)
        return [
            run_move(task, task.move, source, result, item, grid, self.arithmetic, route)
            for source, result, item in pairs
        ]

    def _exact_move(self, task: CaseTask, operands: Sequence[CaseValue]) -> bool:
        reduction = task.move.reduction if task.move is not None else None
        return is_polynomial(reduction) and all(
            is_polynomial(kind) for value in operands for kind in value.folds.values()
        )

    def _specify_random(self, task: CaseTask) -> None:
        """What the ranks drew is the specification: nobody says which numbers are right, only that copies agree."""
        for output in task.outputs:
            value, held = self.case.values[output], self.held.get(output)
            if held is None or held.fault is not None or value.varying:
                continue
            for ranks in replicas(value, self.case.grid, held.arrays):
                shaped = all(
                    tuple(held.arrays[rank].shape) == value.local_shape(self.case.grid, rank) for rank in ranks
                )
                whole = assemble(value, self.case.grid, self.arithmetic, held.arrays, ranks) if shaped else None
                if whole is not None:
                    self.whole[output] = whole
                    break

    # -- routes --------------------------------------------------------------------------------------------------------

    def _route_of(self, task: CaseTask) -> tuple[int, ...] | None:
        own = read_route(task.attributes.get("route"))
        if own is not None or task.move is None or task.move.kind not in _EXCHANGES:
            return own
        return next((self.routes[operand] for operand in task.operands if operand in self.routes), None)

    def _follow_route(self, task: CaseTask) -> None:
        own = read_route(task.attributes.get("route"))
        if own is None:
            own = next((self.routes[operand] for operand in task.operands if operand in self.routes), None)
        if own is not None:
            self.routes.update(dict.fromkeys(task.outputs, own))
