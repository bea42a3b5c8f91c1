"""Which communication nobody asked for, for all tasks at once; the inspector says it with its reason (`dtir.verify.asked`).

In a compiler's dump an instruction carries the name of the operation that it comes from: where that is a collective, the program asked
for it, else a partitioner put it in. In other formats a communication was put in where its lineage says that a transformation made it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtir.verify.asked import Asked, asked_for
from dtir_app.kinds import COMMUNICATION
from dtir_app.store import Store

Mask = npt.NDArray[np.bool_]


def implicit_mask(store: Store) -> tuple[Mask, Mask]:
    """Which tasks are implicit communication, and which are communication at all."""

    def make() -> tuple[Mask, Mask]:
        communicates = np.isin(store.tasks.family, [int(item) for item in COMMUNICATION])
        implicit = np.zeros(len(store.tasks), dtype=bool)
        for index in np.flatnonzero(communicates).tolist():
            implicit[index] = is_implicit(store, index)
        return implicit, communicates

    return store.memo.made("implicit", make)


def is_implicit(store: Store, task: int) -> bool:
    """Whether a communication is implicit. Who stands beside it makes the reason clearer, and no difference."""
    return asked_for(store.task_records[task], (), ())[0] is Asked.IMPLICIT
