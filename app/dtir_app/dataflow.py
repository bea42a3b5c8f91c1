"""Who makes a value, who reads it, and who therefore waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dtir_app.numbering import Numbering
from dtir_app.store import Edges, Ints, frozen_array


@dataclass(frozen=True, slots=True)
class Dataflow:
    """What follows from inputs, outputs and dependencies.

    Args:
        producer: the task that makes each value, or -1.
        reader_start, readers: the tasks that read value ``v`` are ``readers[reader_start[v]:reader_start[v + 1]]``, in order.
        edges: between tasks of one scope.
    """

    producer: Ints
    reader_start: Ints
    readers: Ints
    edges: Edges


def dataflow(numbering: Numbering, scope_count: int) -> Dataflow:
    """Makers and readers of every value, and who waits for whom. References that lead nowhere are left out.

    Args:
        numbering: tasks and values.
        scope_count: number of scopes.
    """
    producer = _producers(numbering)
    values, scoped = numbering.scoped_values, numbering.scoped_tasks
    read: list[int] = []
    reader: list[int] = []
    source: list[int] = []
    destination: list[int] = []
    order_only: list[bool] = []
    starts = [0] * (scope_count + 1)
    for index, task in enumerate(numbering.tasks):
        scope = numbering.task_scope[index]
        before: dict[int, bool] = {}
        for names, only in ((task.dependencies, True), (task.completes, False)):
            for name in names:
                other = scoped.get((scope, name.value))
                if other is not None and other != index:
                    before[other] = only
        for name in task.inputs:
            used = values.get((scope, name.value))
            if used is not None:
                read.append(used)
                reader.append(index)
                if producer[used] >= 0 and producer[used] != index:
                    before[producer[used]] = False
        for other in sorted(before):
            source.append(other)
            destination.append(index)
            order_only.append(before[other])
        starts[scope + 1] = len(source)
    for scope in range(scope_count):
        starts[scope + 1] = max(starts[scope + 1], starts[scope])
    by_value = np.argsort(np.array(read, dtype=np.int64), kind="stable")
    counts = np.bincount(np.array(read, dtype=np.int64), minlength=len(numbering.values))
    return Dataflow(
        frozen_array(producer, np.int32),
        frozen_array((0, *np.cumsum(counts).tolist()), np.int32),
        frozen_array(np.array(reader, dtype=np.int32)[by_value].tolist(), np.int32),
        Edges(
            frozen_array(source, np.int32),
            frozen_array(destination, np.int32),
            frozen_array(order_only, np.bool_),
            frozen_array(starts, np.int32),
        ),
    )


def _producers(numbering: Numbering) -> list[int]:
    producer = [-1] * len(numbering.values)
    for index, task in enumerate(numbering.tasks):
        scope = numbering.task_scope[index]
        for name in task.outputs:
            made = numbering.scoped_values.get((scope, name.value))
            if made is not None and producer[made] < 0:
                producer[made] = index
    return producer
