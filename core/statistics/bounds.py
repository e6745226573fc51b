"""Worst cases of what is missing (Manski 1990): the least and the greatest value over every possible answer.

They speak of missing answers alone; sampling error comes on top. Without limits to an answer there is no worst case
while any is missing: then both ends are None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Array

Bounds = tuple[float | None, float | None]
Limits = tuple[float, float] | None
"""The least and the greatest an answer can be; None where there are none."""


def mean_bounds(total: float, n: int, missing: int, limits: Limits) -> Bounds:
    """Bound the mean of `n` answers that sum to `total`, and of `missing` ones within `limits`."""
    if n + missing == 0 or (missing and limits is None):
        return None, None
    least, greatest = limits or (0.0, 0.0)
    return (total + missing * least) / (n + missing), (total + missing * greatest) / (n + missing)


def difference_bounds(first: Bounds, second: Bounds) -> Bounds:
    """Bound the first less the second, whose missing answers have nothing to do with each other."""
    (low, high), (less_low, less_high) = first, second
    if low is None or high is None or less_low is None or less_high is None:
        return None, None
    return low - less_high, high - less_low


def paired_bounds(first: Sequence[float] | Array, second: Sequence[float] | Array, limits: Limits) -> Bounds:
    """Bound the mean of first less second over all pairs; NaN is missing.

    Where one side of a pair is there, only the other is unknown: so the range is narrower than that of two means
    of complete pairs, whose incomplete pairs may be anything.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    absent = int(np.isnan(one).sum()), int(np.isnan(other).sum())
    means = (
        mean_bounds(float(np.nansum(x)), len(x) - gone, gone, limits)
        for x, gone in zip((one, other), absent, strict=True)
    )
    return difference_bounds(*means)
