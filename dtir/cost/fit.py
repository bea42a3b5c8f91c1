"""Fits ``alpha + beta · bytes`` in up to three segments to measured times.

What is minimised is the *relative* error, by Huber's loss, so that 8 bytes count as much as 16 MiB and one disturbed
measurement does not bend the curve: iteratively reweighted least squares inside a segment, with alpha and beta not negative;
dynamic programming over where segments end. A further segment must lower the mean error by 4 points (EXECUTION 5).

>>> sizes = [8, 64, 512, 4096, 32768, 262144, 2097152, 16777216]
>>> found = fit_segments(sizes, [2e-6 + 1e-9 * size for size in sizes])
>>> [(item.from_bytes, round(item.alpha_s, 9), round(item.beta_s_per_byte, 12)) for item in found.segments]
[(0.0, 2e-06, 1e-09)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dtir.cost.profile import Segment

Floats: TypeAlias = npt.NDArray[np.float64]

MOST_SEGMENTS = 3
LEAST_POINTS = 4
PENALTY = 0.04
"""Mean relative error that a further segment must save."""

DELTA = 0.1
"""Relative error from which on Huber's loss grows linearly."""

_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit found.

    Args:
        segments: rising, the first from 0.
        errors: relative error of every point, fitted over measured minus 1.
    """

    segments: tuple[Segment, ...]
    errors: tuple[float, ...]

    @property
    def median_error(self) -> float:
        """Median of the absolute relative errors."""
        return float(np.median(np.abs(self.errors)))

    @property
    def p90_error(self) -> float:
        """What 90 % of the absolute relative errors do not exceed."""
        return float(np.quantile(np.abs(self.errors), 0.9))


def fit_line(sizes: Floats, times: Floats) -> tuple[float, float]:
    """``alpha, beta >= 0`` that minimise Huber's loss of ``(alpha + beta · size − time) / time``.

    Shapes: both ``[points]``; times positive.
    """
    weights = 1.0 / times**2
    alpha = beta = 0.0
    for _ in range(_ROUNDS):
        new_alpha, new_beta = _weighted_line(sizes, times, weights)
        error = np.abs((new_alpha + new_beta * sizes - times) / times)
        weights = np.minimum(1.0, DELTA / np.maximum(error, 1e-12)) / times**2
        settled = abs(new_alpha - alpha) <= 1e-9 * new_alpha and abs(new_beta - beta) <= 1e-9 * new_beta
        alpha, beta = new_alpha, new_beta
        if settled:
            break
    return alpha, beta


def _weighted_line(sizes: Floats, times: Floats, weights: Floats) -> tuple[float, float]:
    """Least squares with both coefficients not negative: the free solution, else the better of the two edges."""
    # Scaled, so that sums of squared byte counts and of squared microseconds stay near 1.
    scale = float(sizes.max()) or 1.0
    x, w = sizes / scale, weights / weights.max()
    s, sx, sxx = float(w.sum()), float((w * x).sum()), float((w * x * x).sum())
    sy, sxy = float((w * times).sum()), float((w * x * times).sum())
    determinant = s * sxx - sx * sx
    if determinant > 1e-14 * s * sxx:
        alpha, slope = (sxx * sy - sx * sxy) / determinant, (s * sxy - sx * sy) / determinant
        if alpha >= 0 and slope >= 0:
            return alpha, slope / scale
    edges = [(sy / s, 0.0)]
    if sxx > 0:
        edges.append((0.0, sxy / sxx))
    alpha, slope = min(edges, key=lambda edge: float((w * (edge[0] + edge[1] * x - times) ** 2).sum()))
    return alpha, slope / scale


def _loss(errors: Floats) -> float:
    """The sum of Huber's loss, in units of relative error."""
    size = np.abs(errors)
    return float(np.where(size <= DELTA, size**2 / (2 * DELTA), size - DELTA / 2).sum())


def fit_segments(
    sizes: Sequence[float], times: Sequence[float], *, most: int = MOST_SEGMENTS, penalty: float = PENALTY
) -> Fit:
    """The best segments for measured times.

    Args:
        sizes: message sizes in bytes; any order, repetitions are allowed.
        times: seconds, as many.
        most: most segments.
        penalty: see `PENALTY`.

    Raises:
        ValueError: no point, lists of unequal length, or a time that is not positive and finite.
    """
    if not sizes or len(sizes) != len(times):
        raise ValueError(f"sizes has {len(sizes)} points, times {len(times)}: wanted as many, at least one")
    order = np.argsort(np.asarray(sizes, dtype=np.float64), kind="stable")
    x, y = np.asarray(sizes, dtype=np.float64)[order], np.asarray(times, dtype=np.float64)[order]
    if not (np.all(np.isfinite(y)) and np.all(y > 0) and np.all(np.isfinite(x)) and np.all(x >= 0)):
        raise ValueError("times must be positive and finite, sizes not negative")
    cuts = _best_cuts(x, y, most, penalty)
    segments: list[Segment] = []
    fitted = np.empty_like(y)
    for first, last in cuts:
        alpha, beta = fit_line(x[first:last], y[first:last])
        segments.append(Segment(float(x[first]) if segments else 0.0, alpha, beta))
        fitted[first:last] = alpha + beta * x[first:last]
    errors = np.empty_like(y)
    errors[order] = fitted / y - 1
    return Fit(tuple(segments), tuple(errors.tolist()))


def _best_cuts(x: Floats, y: Floats, most: int, penalty: float) -> list[tuple[int, int]]:
    """Where segments begin and end: least total loss, each further segment at its price, sizes never torn apart."""
    count = len(x)
    # A segment may begin where a new size begins.
    starts = [0, *(place for place in range(1, count) if x[place] > x[place - 1])]
    sizes_from = {start: rank for rank, start in enumerate(starts)}
    ends = [*starts[1:], count]
    price = penalty * count
    costs: dict[tuple[int, int], float] = {}

    def cost(first: int, last: int) -> float:
        if (first, last) not in costs:
            alpha, beta = fit_line(x[first:last], y[first:last])
            costs[first, last] = _loss((alpha + beta * x[first:last] - y[first:last]) / y[first:last])
        return costs[first, last]

    # best[k][end]: least loss of the points before `end` in k segments, and where the last of them begins.
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for segment in range(1, max(1, most) + 1):
        found: dict[int, tuple[float, int]] = {}
        for rank, end in enumerate(ends):
            for start, (before, _) in best[-1].items():
                if start >= end:
                    continue
                points = rank + 1 - sizes_from[start]
                whole = start == 0 and end == count
                if points < LEAST_POINTS and not whole:
                    continue
                total = before + cost(start, end)
                if end not in found or total < found[end][0]:
                    found[end] = (total, start)
        best.append(found)
        if segment > 1 and count not in found:
            break
    used = min(
        (number for number in range(1, len(best)) if count in best[number]),
        key=lambda number: best[number][count][0] + price * (number - 1),
    )
    cuts: list[tuple[int, int]] = []
    end = count
    for number in range(used, 0, -1):
        start = best[number][end][1]
        cuts.append((start, end))
        end = start
    return cuts[::-1]
