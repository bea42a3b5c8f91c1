"""Fits on synthetic curves whose truth is known, with and without noise and outliers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.cost.fit import LEAST_POINTS, Fit, fit_line, fit_segments
from dtir.cost.profile import Curve, Segment

SIZES = [1 << power for power in range(3, 25)]

alphas = st.floats(1e-7, 1e-3)
betas = st.floats(1e-12, 1e-8)


def times_of(segments: tuple[Segment, ...]) -> list[float]:
    curve = Curve("all_reduce", 2, segments=segments)
    return [curve.seconds(size) for size in SIZES]


@settings(max_examples=25)
@given(alphas, betas)
def test_a_line_is_found_exactly(alpha: float, beta: float) -> None:
    found = fit_segments(SIZES, times_of((Segment(0, alpha, beta),)))
    (segment,) = found.segments
    assert max(map(abs, found.errors)) < 1e-6
    assert segment.from_bytes == 0


@settings(max_examples=25)
@given(alphas, betas, st.floats(4, 30), st.floats(3, 40), st.sampled_from([4096, 32768, 131072]))
def test_two_segments_are_found_where_they_meet(
    alpha: float, beta: float, more: float, less: float, from_bytes: int
) -> None:
    # A protocol change: more latency, less time a byte.
    truth = (Segment(0, alpha, beta), Segment(from_bytes, alpha * more, beta / less))
    found = fit_segments(SIZES, times_of(truth))
    assert found.median_error < 0.05
    assert len(found.segments) <= 3
    starts = [item.from_bytes for item in found.segments]
    assert starts == sorted(set(starts))


def test_three_segments_of_a_real_machine() -> None:
    # all_reduce of 4 processes, EXECUTION 5.
    truth = (Segment(0, 10.9e-6, 2e-9), Segment(4096, 38e-6, 1 / 1.3e9), Segment(2 << 20, 813e-6, 1 / 0.54e9))
    found = fit_segments(SIZES, times_of(truth))
    assert [item.from_bytes for item in found.segments] == [0, 4096, 2 << 20]
    for mine, right in zip(found.segments, truth, strict=True):
        assert mine.alpha_s == pytest.approx(right.alpha_s, rel=1e-3)
        assert mine.beta_s_per_byte == pytest.approx(right.beta_s_per_byte, rel=1e-3)
    assert fit_segments(SIZES, times_of(truth), most=1).median_error > 0.1


@pytest.mark.parametrize("seed", range(8))
def test_noise_of_ten_percent_leaves_an_error_of_a_few(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = (Segment(0, 1.3e-6, 5e-10), Segment(8192, 5e-6, 3e-11))
    clean = np.array(times_of(truth))
    found = fit_segments(SIZES, list(clean * np.exp(rng.normal(0, 0.1, len(SIZES)))))
    fitted = Curve("x", 2, segments=found.segments)
    against_truth = [abs(fitted.seconds(size) / right - 1) for size, right in zip(SIZES, clean, strict=True)]
    assert float(np.median(against_truth)) < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_outliers_do_not_bend_the_curve(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clean = np.array(times_of((Segment(0, 2e-6, 1e-10),)))
    disturbed = clean.copy()
    disturbed[rng.choice(len(SIZES), 3, replace=False)] *= 50
    found = fit_segments(SIZES, list(disturbed))
    fitted = Curve("x", 2, segments=found.segments)
    assert float(np.median([abs(fitted.seconds(size) / t - 1) for size, t in zip(SIZES, clean, strict=True)])) < 0.05
    squares = np.polyfit(SIZES, disturbed, 1)
    plain = np.median(np.abs(np.polyval(squares, SIZES) / clean - 1))
    assert plain > 0.5  # what ordinary least squares makes of the same points


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 1 << 30), st.floats(1e-7, 10)), min_size=1, max_size=30))
def test_coefficients_are_never_negative(points: list[tuple[int, float]]) -> None:
    found = fit_segments([size for size, _ in points], [seconds for _, seconds in points])
    assert 1 <= len(found.segments) <= 3
    assert found.segments[0].from_bytes == 0
    for item in found.segments:
        assert item.alpha_s >= 0
        assert item.beta_s_per_byte >= 0
    assert len(found.errors) == len(points)


@given(st.integers(1, 3 * LEAST_POINTS))
def test_a_segment_has_at_least_four_sizes(count: int) -> None:
    sizes = SIZES[:count]
    rng = np.random.default_rng(count)
    found = fit_segments(sizes, list(np.exp(rng.normal(0, 3, count))), penalty=0.0)
    starts = [0, *(sizes.index(int(item.from_bytes)) for item in found.segments[1:]), count]
    if len(found.segments) > 1:
        assert min(last - first for first, last in itertools.pairwise(starts)) >= LEAST_POINTS


def test_repeated_sizes_stay_together() -> None:
    sizes = [size for size in SIZES for _ in range(3)]
    truth = (Segment(0, 1e-6, 1e-9), Segment(4096, 2e-5, 1e-10))
    found = fit_segments(sizes, [Curve("x", 2, segments=truth).seconds(size) for size in sizes])
    assert [item.from_bytes for item in found.segments] == [0, 4096]


def test_the_order_of_points_does_not_matter() -> None:
    times = times_of((Segment(0, 1e-6, 1e-9), Segment(4096, 2e-5, 1e-10)))
    there, back = fit_segments(SIZES, times), fit_segments(SIZES[::-1], times[::-1])
    assert there.segments == back.segments
    assert there.errors == back.errors[::-1]


def test_times_that_fall_with_size_give_a_constant() -> None:
    alpha, beta = fit_line(np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 3.0, 2.0, 1.5]))
    assert beta == 0
    assert 1.5 < alpha < 4


@pytest.mark.parametrize(
    ("sizes", "times"),
    [([], []), ([1], []), ([1], [0.0]), ([1], [-1.0]), ([1], [float("nan")]), ([-1], [1.0]), ([1], [float("inf")])],
)
def test_what_cannot_be_fitted_is_refused(sizes: list[float], times: list[float]) -> None:
    with pytest.raises(ValueError, match=r"times|sizes"):
        fit_segments(sizes, times)


def test_errors_are_relative_and_summed_up() -> None:
    fit = Fit((Segment(0, 1, 0),), (-0.5, 0.1, 0.0, 0.0, 0.0))
    assert fit.median_error == 0.0
    assert fit.p90_error == pytest.approx(0.34)
