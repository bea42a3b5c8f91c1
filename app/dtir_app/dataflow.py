"""Who makes a value, who reads it, and who therefore waits for whom."""

from __future__ import annotations

import numpy as np

from dtir_app.numbering import Numbering
from dtir_app.store import Edges, frozen_array


def dataflow(numbering: Numbering, scope_count: int) -> tuple[list[int], list[int], Edges]:
    """The maker and the number of readers of every value, and the edges between tasks of one scope.

    Args:
        numbering: tasks and values.
        scope_count: number of scopes.
    """
    producer = [-1] * len(numbering.values)
    consumers = [0] * len(numbering.values)
    values, scoped = numbering.scoped_values, numbering.scoped_tasks
    for index, task in enumerate(numbering.tasks):
        scope = numbering.task_scope[index]
        for name in task.outputs:
            made = values.get((scope, name.value))
            if made is not None and producer[made] < 0:
                producer[made] = index
    source: list[int] = []
    destination: list[int] = []
    order_only: list[bool] = []
    starts = [0] * (scope_count + 1)
    for index, task in enumerate(numbering.tasks):
        scope = numbering.task_scope[index]
        before: dict[int, bool] = {}
        for name in task.dependencies:
            other = scoped.get((scope, name.value))
            if other is not None and other != index:
                before[other] = True
        for name in task.completes:
            other = scoped.get((scope, name.value))
            if other is not None and other != index:
                before[other] = False
        for name in task.inputs:
            used = values.get((scope, name.value))
            if used is not None:
                consumers[used] += 1
                if producer[used] >= 0 and producer[used] != index:
                    before[producer[used]] = False
        for other in sorted(before):
            source.append(other)
            destination.append(index)
            order_only.append(before[other])
        starts[scope + 1] = len(source)
    for scope in range(scope_count):
        starts[scope + 1] = max(starts[scope + 1], starts[scope])
    edges = Edges(
        frozen_array(source, np.int32),
        frozen_array(destination, np.int32),
        frozen_array(order_only, np.bool_),
        frozen_array(starts, np.int32),
    )
    return producer, consumers, edges
