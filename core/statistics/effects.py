"""Effect sizes.

Sums have the shape (clusters, sides, columns), and column 0 counts the answers. Shares have the columns count and
hits; paired yes-no answers have one side with the columns count, b (yes then no) and c (no then yes).
"""

from __future__ import annotations

import numpy as np

from .intervals import FREE, LEAST_P, Array, Ranges, ratio

TURN = (-np.pi, np.pi)
"""What Cohen's h can be."""
N, SUM, SQUARES = 0, 1, 2
"""Columns of the sums: the count, the sum of a number and of its square."""
MEANS: Ranges = (FREE, FREE)
"""What `cell_statistics` and `contrast_statistics` can be."""


def cell_statistics(totals: Array) -> Array:
    """Return per cell the mean, and the mean in standard deviations."""
    total = totals[..., 0, :]
    return np.stack([_mean(total), standardised(_mean(total), variance_of(total))], axis=-1)


def contrast_statistics(totals: Array) -> Array:
    """Return the mean of the first side less that of the second, and Cohen's d."""
    first, second = totals[..., 0, :], totals[..., 1, :]
    gap = _mean(first) - _mean(second)
    return np.stack([gap, standardised(gap, _pooled(first, second))], axis=-1)


def _mean(total: Array) -> Array:
    return ratio(total[..., SUM], total[..., N])


def standardised(gap: Array, variance: Array) -> Array:
    """Return a difference in standard deviations: 0 for none at all, undefined for another that does not vary.

    Resamples in which nothing differs count as 0; left out, they would move the interval away from 0.
    """
    return np.where((gap == 0) & (variance == 0), 0.0, ratio(gap, np.sqrt(variance)))


def _spread(total: Array) -> Array:
    """Sum of squares about the mean; 0 where it is no more than rounding."""
    about = total[..., SQUARES] - ratio(total[..., SUM] ** 2, total[..., N])
    return np.where(about > 1e-12 * total[..., SQUARES], about, 0.0)


def variance_of(total: Array) -> Array:
    """Return the variance from totals (..., columns) of count, sum and sum of squares."""
    return ratio(_spread(total), total[..., N] - 1)


def _pooled(one: Array, other: Array) -> Array:
    return ratio(_spread(one) + _spread(other), one[..., N] + other[..., N] - 2)


def arcsine(share: Array) -> Array:
    """Cohen's arcsine transform; the clip takes off rounding only."""
    angle: Array = 2 * np.arcsin(np.sqrt(np.clip(share, 0, 1)))
    return angle


ODDS_RATIO = "odds ratio (0.5 added to each count: Haldane-Anscombe)"


def defined(value: float) -> float | None:
    """Return a float, or None for what is not finite."""
    return float(value) if np.isfinite(value) else None


def p_of(value: float) -> float | None:
    """Return a p-value that is never 0; None where it is undefined."""
    return max(float(value), LEAST_P) if np.isfinite(value) else None


def risk_difference(totals: Array) -> Array:
    """Return the first share less the second."""
    first, second = _shares(totals)
    return first - second


def cohens_h(totals: Array) -> Array:
    """Return the difference of the arcsine-transformed shares. Source: Cohen (1988), chapter 6."""
    first, second = (2 * np.arcsin(np.sqrt(np.clip(share, 0, 1))) for share in _shares(totals))
    difference: Array = first - second
    return difference


def odds_ratio(totals: Array) -> Array:
    """Return the odds ratio with 0.5 added to each of the four counts, so it is never infinite.

    Source: Haldane (1956), Anscombe (1956).
    """
    hits, misses = totals[..., 1], totals[..., 0] - totals[..., 1]
    odds = (hits + 0.5) / (misses + 0.5)
    there = (totals[..., 0, 0] > 0) & (totals[..., 1, 0] > 0)
    found: Array = np.where(there, odds[..., 0] / odds[..., 1], np.nan)
    return found


def matched_difference(totals: Array) -> Array:
    """Return (b - c) / n."""
    return ratio(totals[..., 0, 1] - totals[..., 0, 2], totals[..., 0, 0])


def matched_odds_ratio(totals: Array) -> Array:
    """Return (b + 0.5) / (c + 0.5), never infinite."""
    b, c = totals[..., 0, 1], totals[..., 0, 2]
    return np.where(totals[..., 0, 0] > 0, (b + 0.5) / (c + 0.5), np.nan)


def _shares(totals: Array) -> tuple[Array, Array]:
    share = ratio(totals[..., 1], totals[..., 0])
    return share[..., 0], share[..., 1]
