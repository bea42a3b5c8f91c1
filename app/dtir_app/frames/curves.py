"""Curves between items."""

from __future__ import annotations

import numpy as np

from dtir_app.frames.placing import Floats


def curve(x0: Floats, y0: Floats, x1: Floats, y1: Floats, **more: Floats) -> dict[str, Floats]:
    """Columns of curves that leave to the right and arrive from the left."""
    bend = np.maximum(0.22, np.minimum(np.abs(x1 - x0) * 0.5, 1.5))
    made = {"x0": x0, "y0": y0, "x1": x1, "y1": y1, "cx0": x0 + bend, "cy0": y0, "cx1": x1 - bend, "cy1": y1}
    return {name: column.astype(np.float32) for name, column in (made | more).items()}
