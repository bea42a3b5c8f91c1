"""What a cost model says beforehand of a run: handed in from outside, kept apart from what is measured.

The executors know no cost model; who has one makes a `Forecast` for a plan, step by step (`dtir run --profile` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StepForecast:
    """The planned time of one execution of a step.

    Args:
        us: of a local step on one rank, of a communication step in its dearest group; None when no model knows it.
        model: where the number comes from.
        noise: IQR over median of the measurements behind the model; None where nothing was measured.
    """

    us: float | None
    model: str
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedSpans:
    """The planned schedule as columns of equal length: a step on ranks that do the same, or one group of a collective.

    Args:
        step: index of the step.
        start_us, end_us: from the beginning of the program.
        arrived_us: when each class of `classes` came to a collective; None elsewhere.
        executions: for how many executions it stands (rounds of a loop are planned once).
        classes: places in `ranks` of those that take part.
        meeting: which of the step's groups (of classes) it is.
        ranks: the classes: ranks that do the same.
    """

    step: tuple[int, ...] = field(default=(), repr=False)
    start_us: tuple[float, ...] = field(default=(), repr=False)
    end_us: tuple[float, ...] = field(default=(), repr=False)
    arrived_us: tuple[tuple[float, ...] | None, ...] = field(default=(), repr=False)
    executions: tuple[int, ...] = field(default=(), repr=False)
    classes: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    ranks: tuple[tuple[int, ...], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The plan of a run on a machine.

    Args:
        profile: of the machine: ``id``, ``standing`` (measured, published or model), ``date``, ``source``, ``digest``.
        steps: by step index.
        makespan_us: from the first start to the last end.
        notes: what the numbers leave open.
        spans: the schedule; None where it is not kept.
    """

    profile: Mapping[str, Any]
    steps: Mapping[int, StepForecast] = field(repr=False)
    makespan_us: float
    notes: tuple[str, ...] = ()
    spans: PlannedSpans | None = field(default=None, repr=False)

    def us(self, step: int) -> float | None:
        """The planned time of one execution; None when it is not known."""
        found = self.steps.get(step)
        return found.us if found is not None else None

    @property
    def longest_us(self) -> float:
        """The longest planned time of one execution."""
        return max((item.us for item in self.steps.values() if item.us is not None), default=0.0)
