"""Shares of a count: exact interval, exact test, worst case of what is missing.

A share of nothing is None, and so are its interval and its test.
"""

from __future__ import annotations

import sys

import msgspec

from .binomial import binomial_test, exact_interval
from .bounds import Bounds, mean_bounds

LEAST_P = sys.float_info.min
"""A p below this underflows; it is small, but never 0."""


class Share(msgspec.Struct, frozen=True):
    """A share of `n` with its exact (Clopper-Pearson) interval and exact two-sided binomial test against 1/2."""

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def share(hits: int, n: int, level: float) -> Share:
    """Return the share of `hits` among `n` decided units; everything None for n = 0."""
    if n == 0:
        return Share(None)
    return Share(hits / n, *exact_interval(hits, n, level), max(binomial_test(hits, n), LEAST_P))


def worst_case(hits: int, n: int, missing: int) -> Bounds:
    """Return the least and the greatest share over all answers the missing units might have given (Manski 1990)."""
    return mean_bounds(hits, n, missing, (0.0, 1.0))


def scaled(value: float | None, by: float, shift: float = 0.0) -> float | None:
    """Return value * by + shift; None stays None."""
    return None if value is None else value * by + shift
