"""Random graphs whose nodes are listed in an order in which they may run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Graph = tuple[int, npt.NDArray[np.int32], npt.NDArray[np.int32]]


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 40) -> Graph:
    count = draw(st.integers(1, max_nodes))
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1]),
            unique=True,
            max_size=3 * count,
        )
        if count > 1
        else st.just([])
    )
    source = np.array([pair[0] for pair in pairs], dtype=np.int32)
    destination = np.array([pair[1] for pair in pairs], dtype=np.int32)
    return count, source, destination
