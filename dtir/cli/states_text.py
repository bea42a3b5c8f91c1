"""The declared states around a finding, in words: the operands of the task it speaks of, then its results.

A finding about a layout says what is wrong; these lines show what stands there, so that the program need not be opened beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dtir.cli.terminal import printable
from dtir.ir.ids import ValueId
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic

LAYOUT_FAMILIES = frozenset(
    {"accumulate", "collective", "halo", "ownership", "partial", "reshard", "scale", "sharding", "value"}
)
"""Families of codes whose findings are about states; order, races and buffers are about other things."""

VALUES_SHOWN = 6


def layout_text(value: DistributedValue) -> str:
    """Type and state of a value, axis by axis: ``f32[4, 8], dim 1 split over tp, replicated over dp``."""
    sharding = value.sharding
    parts = [f"{value.type.dtype}[{', '.join(map(str, value.type.shape))}]"]
    parts += [f"dim {dim} split over {', '.join(axes)}" for dim, axes in enumerate(sharding.dimension_axes) if axes]
    parts += [f"dim {item.dim} in shards of {', '.join(map(str, item.sizes))}" for item in sharding.sizes]
    if sharding.partial is not None:
        parts.append(f"pending {sharding.partial.op.value} over {', '.join(sharding.partial.axes)}")
    if sharding.varying:
        parts.append(f"per rank over {', '.join(sharding.varying)}")
    parts += [f"only at {item.axis}={item.coordinate}" for item in sharding.at]
    if sharding.replicated_axes:
        parts.append(f"replicated over {', '.join(sharding.replicated_axes)}")
    if sharding.halo is not None:
        widths = ", ".join(f"dim {item.dim} {item.before}+{item.after}" for item in sharding.halo.dims)
        parts.append(f"ghosts {widths}{'' if sharding.halo.corners else ' without corners'}")
    if (value.scale.numerator, value.scale.denominator) != (1, 1):
        parts.append(f"scale {value.scale.numerator}/{value.scale.denominator}")
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class States:
    """Tasks and values of a program by display id."""

    tasks: Mapping[str, DistributedTask] = field(default_factory=dict[str, DistributedTask])
    values: Mapping[ValueId, DistributedValue] = field(default_factory=dict[ValueId, DistributedValue])

    @classmethod
    def of(cls, program: DistributedTaskIR) -> States:
        """The tasks and values of a program, its regions included."""
        return cls(
            {str(task.id): task for task in program.all_tasks()}, {value.id: value for value in program.all_values()}
        )

    def lines(self, item: Diagnostic) -> list[str]:
        """``before`` and ``after`` lines of the first task that a finding about layouts concerns; nothing for other findings."""
        if item.code.partition(".")[0] not in LAYOUT_FAMILIES:
            return []
        task = next((self.tasks[one] for one in item.subject if one in self.tasks), None)
        if task is None:
            return []
        return [*self._side("before", task.inputs), *self._side("after", task.outputs)]

    def _side(self, label: str, identifiers: Sequence[ValueId]) -> list[str]:
        shown = [self.values[one] for one in identifiers[:VALUES_SHOWN] if one in self.values]
        lines = [
            f"{label if index == 0 else '':<7} {value.name or value.id}: {layout_text(value)}"
            for index, value in enumerate(shown)
        ]
        more = len(identifiers) - VALUES_SHOWN
        if more > 0:
            lines.append(f"{'':<7} and {more} more values")
        return [printable(line) for line in lines]


NO_STATES = States()
