"""What a process has of a step: several ranks or groups may be its own, and then its time is theirs together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dtir.execute.binding import Binding
from dtir.execute.runner import groups_of
from dtir.execute.steps import ExecPlan, Step, StepKind


class Shares:
    """How many ranks and groups of a step a process does.

    Args:
        plan: the plan.
        binding: which process does which rank; None: all are in one.
    """

    def __init__(self, plan: ExecPlan, binding: Binding | None) -> None:
        self._process_of = [seat.process for seat in binding.seats] if binding is not None else [0] * plan.ranks
        self._alone = len(set(self._process_of)) == 1
        self._steps = {step.index: step for scope in plan.scopes for step in scope.steps}
        self._counts: dict[int, Counter[int]] = {}
        self._turns: dict[int, int] = {}

    def _ranks_by_process(self, step: Step) -> Counter[int]:
        key = id(step.ranks)  # the plan keeps it alive
        if key not in self._counts:
            self._counts[key] = Counter(self._process_of[rank] for rank in step.ranks)
        return self._counts[key]

    def ranks_together(self, step: Step) -> int:
        """Most ranks that one process does together; 1 for control flow, whose time is that of what it enters."""
        if step.kind is not StepKind.LOCAL:
            return 1
        return max(self._ranks_by_process(step).values(), default=1)

    def share(self, index: int, rank: int | None) -> float:
        """What one rank has of the time of a record."""
        step = self._steps[index]
        if step.kind is not StepKind.LOCAL:
            return 1.0
        counts = self._ranks_by_process(step)
        process = self._process_of[step.ranks[0] if rank is None else rank] if len(step.ranks) else 0
        return 1 / max(1, counts[process])

    def groups_in_turn(self, step: Step) -> int:
        """Most groups (or pairs) that one process has members in."""
        groups = groups_of(step)
        if self._alone:
            return max(1, len(groups))
        if step.exchange is None:
            return self._most_in_a_process(groups)
        key = id(groups)  # the plan keeps it alive
        if key not in self._turns:
            self._turns[key] = self._most_in_a_process(groups)
        return self._turns[key]

    def _most_in_a_process(self, groups: Sequence[Sequence[int]]) -> int:
        counts: Counter[int] = Counter()
        for group in groups:
            counts.update({self._process_of[rank] for rank in group})
        return max(counts.values(), default=1)
