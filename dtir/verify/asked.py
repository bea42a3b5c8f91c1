"""Who asked for a communication: a person who wrote it, or a partitioner that put it in.

>>> "psum" in EXPLICIT_NAMES
True
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from dtir.ir.ids import LineageKind
from dtir.ir.tasks import DistributedTask
from dtir.verify.context import task_name

EXPLICIT_NAMES = frozenset(
    {
        "psum", "psum2", "psum_invariant", "pmax", "pmin", "pmean", "pbroadcast", "all_gather", "all_gather_invariant",
        "all_to_all", "ppermute", "pshuffle", "psum_scatter", "reduce_scatter", "pgather", "ragged_all_to_all",
        "unreduced_psum", "collective_permute", "all_reduce", "broadcast_collective",
    }
)  # fmt: skip
"""Names of collectives that a person writes (JAX's, as they stand at the end of an instruction's ``op_name``)."""


class Asked(Enum):
    """Who asked for a communication."""

    EXPLICIT = "explicit"
    IMPLICIT = "implicit"


def asked_for(
    task: DistributedTask, makers: Sequence[DistributedTask], readers: Sequence[DistributedTask]
) -> tuple[Asked, str]:
    """Who asked for a task, and how that is known.

    Args:
        task: the communication.
        makers: the tasks that make its operands.
        readers: the tasks that read its results.
    """
    if task.operation.dialect == "hlo":
        name = task.attributes.get("op_name")
        return _in_dump(name if isinstance(name, str) else "", makers, readers)
    lineage = task.lineage
    if lineage.kind in (LineageKind.GENERATED, LineageKind.DECOMPOSED, LineageKind.LOWERED) and lineage.sources:
        return Asked.IMPLICIT, f"put in by {lineage.transform}"
    if task.attributes.get("op.intro") is True:
        return Asked.EXPLICIT, "stands in the program, and only in its distributed form"
    return Asked.EXPLICIT, "stands in the program itself"


def _in_dump(name: str, makers: Sequence[DistributedTask], readers: Sequence[DistributedTask]) -> tuple[Asked, str]:
    if not name:
        return Asked.IMPLICIT, "it has no name in the source: the compiler put it in"
    last = _last_part(name)
    if last in EXPLICIT_NAMES:
        return Asked.EXPLICIT, f"the source says {last}"
    if last == "sharding_constraint":
        return Asked.IMPLICIT, "a sharding constraint asks for the layout; the partitioner chose the collective"
    for side, tasks in (("operand", makers), ("reader", readers)):
        for other in tasks:
            if other.attributes.get("op_name") == name:
                words = f"it carries the source name of its {side} {task_name(other)} ({last})"
                return Asked.IMPLICIT, f"{words}: the partitioner put it in"
    return Asked.IMPLICIT, f"its source name ({last}) is no collective: the partitioner put it in"


def _last_part(name: str) -> str:
    """The operation at the end of a source name: ``jit(f)/transpose(jvp())/psum[axes=('x',)]`` is psum."""
    return name.rsplit("/", 1)[-1].split("[", 1)[0].strip()
