"""How measured times are spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of measured times, in microseconds.

    Args:
        samples: how many times.
        p50_us, p95_us, min_us: the median, what 95 % do not exceed, and the least; None without a sample.
        iqr_us: distance of the quartiles; None with fewer than two samples.

    >>> found = Spread.of([10.0, 12.0, 11.0, 19.0])
    >>> found.p50_us, found.min_us, found.iqr_us
    (11.5, 10.0, 3.0)
    """

    samples: int = 0
    p50_us: float | None = None
    p95_us: float | None = None
    min_us: float | None = None
    iqr_us: float | None = None

    @classmethod
    def of(cls, times_us: Sequence[float]) -> Spread:
        """The spread of some times."""
        if not times_us:
            return NOTHING
        low, middle, high, top = (float(item) for item in np.percentile(times_us, [25, 50, 75, 95]))
        return cls(len(times_us), middle, top, float(min(times_us)), high - low if len(times_us) > 1 else None)

    @property
    def relative(self) -> float | None:
        """IQR over median: the noise; None where there is none to tell."""
        if self.iqr_us is None or not self.p50_us:
            return None
        return self.iqr_us / self.p50_us


NOTHING = Spread()


def error_percent(measured_us: float | None, planned_us: float | None) -> float | None:
    """How far a measured time is from the planned one, in percent of the plan; None where one of them is missing."""
    if planned_us is None or measured_us is None or planned_us <= 0:
        return None
    return 100 * (measured_us - planned_us) / planned_us
