"""Which tasks folding leaves as they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtir_app.kinds import COMMUNICATION, Family
from dtir_app.store import Store

_COMMUNICATION = [int(family) for family in COMMUNICATION]


def communicating_scopes(store: Store) -> npt.NDArray[np.bool_]:
    """Scopes in which something communicates, there or in a region entered from there."""

    def make() -> npt.NDArray[np.bool_]:
        found = np.zeros(len(store.scopes), dtype=bool)
        found[store.tasks.scope[np.isin(store.tasks.family, _COMMUNICATION)]] = True
        waiting = np.flatnonzero(found).tolist()
        while waiting:
            for caller in store.scopes[waiting.pop()].callers:
                outer = int(store.tasks.scope[caller])
                if not found[outer]:
                    found[outer] = True
                    waiting.append(outer)
        return found

    return store.memo.made("communicating", make)


def standing(store: Store) -> npt.NDArray[np.bool_]:
    """Tasks that folding leaves as they are: all but local compute and calls, loops and branches of nothing but that.

    A fused kernel of a compiler is a call of local work, and folds with its surroundings.
    """

    def make() -> npt.NDArray[np.bool_]:
        stands = store.tasks.family != Family.LOCAL
        inside = communicating_scopes(store)
        for task, scopes in store.tasks.entered.items():
            stands[task] = any(inside[scope] for scope in scopes)
        return stands

    return store.memo.made("standing", make)
