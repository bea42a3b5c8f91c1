"""Message sizes that follow from types and layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dtir.analysis.blocks import local_shape
from dtir.analysis.exchanges import is_routed
from dtir.analysis.flow import Flow
from dtir.analysis.states import declared_state
from dtir.analysis.volume import bytes_of_shape, counted, message_bytes
from dtir.ir.collectives import CollectiveKind, collective_kind
from dtir.ir.expr import Scalar
from dtir.ir.ids import ValueId
from dtir.ir.tasks import Collective, DistributedTask
from dtir.ir.values import DistributedValue
from dtir.verify.context import Context, value_name


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one collective.

    Args:
        index: the task.
        declared: what it says.
        derived: bytes that follow.
        what: whose bytes they are.
        formula: how they are counted.
        value: the value they are counted from.
    """

    index: int
    declared: Scalar
    derived: int | float
    what: str
    formula: str
    value: DistributedValue


class LocalBytes:
    """Bytes of the largest local part of every value; counted once for each type and layout."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[int, int, int], tuple[int | float | None, str]] = {}

    def of(self, value: DistributedValue) -> tuple[int | float | None, str]:
        """Bytes and how they are counted; None while symbolic, or where shards have no well-defined size."""
        key = id(value.type), id(value.sharding), id(value.local_shapes)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._count(value)
        return found

    def _count(self, value: DistributedValue) -> tuple[int | float | None, str]:
        around = self._context.around
        if value.local_shapes and len({item.shape for item in value.local_shapes}) > 1:
            return None, ""
        shape = local_shape(value, declared_state(value.sharding, around.space), around.space)
        numbers = [around.number(extent) for extent in shape]
        if any(number is None for number in numbers):
            return None, ""
        size = counted(bytes_of_shape(shape, value.type.dtype), self._context.program.bindings)
        return size, f"{' x '.join(map(str, numbers)) or '1'} of {value.type.dtype}"


def message_sizes(context: Context, flow: Flow) -> Iterator[Size]:
    """Collectives of one operand and one result whose size follows from layouts that are well defined."""
    local = LocalBytes(context)
    for index, task in enumerate(flow.scope.tasks):
        if not isinstance(task.body, Collective) or is_routed(task):
            continue
        kind = collective_kind(task.body.spec)
        if kind is CollectiveKind.COLLECTIVE_PERMUTE or len(task.inputs) != 1 or len(task.outputs) != 1:
            continue
        source = _judged(flow, task.inputs[0])
        target = _judged(flow, task.outputs[0])
        if source is None or target is None:
            continue
        value = target if kind is CollectiveKind.ALL_GATHER else source
        size, formula = local.of(value)
        derived = message_bytes(kind, size, size)
        if isinstance(derived, (int, float)):
            side = "the full output" if value is target else "the local input"
            yield Size(index, task.body.spec.message_bytes, derived, f"{side} {value_name(value)}", formula, value)


def _judged(flow: Flow, identifier: ValueId) -> DistributedValue | None:
    """A value whose shards have a size; None below an operator without a rule, or where the layout is broken."""
    known = flow.values.get(identifier)
    if known is None or not known.sized or not known.uniform:
        return None
    return flow.scope.values[flow.position[identifier]]


def transfer_bytes(context: Context, flow: Flow, task: DistributedTask) -> tuple[int | float | None, str]:
    """Bytes of the local part that a transfer moves."""
    value = _judged(flow, task.inputs[0]) if task.inputs else None
    return (None, "") if value is None else LocalBytes(context).of(value)
