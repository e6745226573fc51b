"""The common scale: dominance, how much more often a unit goes with the construct than against it.

Dominance is Cliff's delta (Cliff 1993), P(with) - P(against), from -1 to 1 and 0 without an effect. It is the one
effect size that the rows of these studies have without an assumption: the difference of two shares, of two
probabilities of an answer, or of the pairs preferred either way is its value; a share p is 2p - 1. Standardised
differences are converted under normal distributions of equal variance, which is an approximation: d of two groups
gives 2 Phi(d / sqrt 2) - 1 (McGraw and Wong 1992), that of matched units 2 Phi(d) - 1. All are monotone, so the ends of
an interval are converted as the value is.

Variances of shares depend on the share. For what needs a variance, dominance is transformed by the arcsine: Cohen's h
of the share of units that go with the construct, against one half (Cohen 1988, chapter 6).
"""

from __future__ import annotations

import math

import msgspec

from ...catalogue.constructs import Method
from ...contracts import Estimate
from ...contracts.errors import DataError
from ...statistics.intervals import exact_interval, normal_cdf, normal_isf

EXACT = ("difference", "share")
"""Scales that are brought to dominance without an assumption."""
APPROXIMATE = ("d", "dz")
PERCENT = ("%", "percentage points")
BY_CLUSTERS = "exact (Clopper-Pearson), clusters that all agree"


class Placed(msgspec.Struct, frozen=True):
    """A value on the common scale, in the direction of the construct."""

    value: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    interval: str = ""
    """Method of the interval."""
    approximate: bool = False
    """Whether the conversion assumes normal distributions."""

    @property
    def h(self) -> float:
        """Return Cohen's h, whose variance does not depend on its value."""
        return math.asin(self.value)

    @property
    def error(self) -> float | None:
        """Return the standard error of `h`, so that the normal interval is as wide as the wider side of this one.

        With few clusters the interval is by Student's t, and the error larger than the estimated one.
        """
        if self.low is None or self.high is None:
            return None
        side = max(self.h - math.asin(self.low), math.asin(self.high) - self.h)
        return side / float(normal_isf((1 - self.level) / 2)) if side > 0 else None


def place(estimate: Estimate, method: Method) -> Placed | None:
    """Return an estimate on the common scale; None if it has no value, or the method only a sign.

    Raises:
        DataError: the estimate is not on the scale that the construct says.
    """
    if method.scale == "sign":
        return None
    if method.scale in APPROXIMATE:
        effect = estimate.effect
        ends, level = (effect.value, effect.low, effect.high), estimate.interval.level
        said = f"{estimate.interval.method}, of {effect.name}" if effect.low is not None else ""
    else:
        _ensure_fitting(estimate, method)
        ends = (estimate.value, estimate.low, estimate.high)
        level, said = estimate.interval.level, estimate.interval.method
    value, low, high = (None if x is None or not math.isfinite(x) else _convert(x, estimate, method) for x in ends)
    if value is None:
        return None
    if low is None or high is None:
        low, high, said = _agreeing(value, estimate, level)
    if method.sign < 0:
        value, low, high = -value, None if high is None else -high, None if low is None else -low
    return Placed(value, low, high, level, said, method.scale in APPROXIMATE)


def _ensure_fitting(estimate: Estimate, method: Method) -> None:
    half = 50.0 if estimate.unit in PERCENT else 0.5
    neutral = half if method.scale == "share" else 0.0
    if estimate.neutral != neutral or estimate.unit not in (*PERCENT, "", "share", "share of decided pairs"):
        unit = f" {estimate.unit}" if estimate.unit else ""
        raise DataError(
            f"{estimate.metric} is no {method.scale!r}: its neutral value is {estimate.neutral}{unit}, and that of a "
            f"{method.scale} is {neutral:g}. Give the method another scale.",
            code="construct.scale",
            measure=estimate.metric,
            scale=method.scale,
        )


def _convert(x: float, estimate: Estimate, method: Method) -> float:
    if method.scale == "d":
        return float(2 * normal_cdf(x / math.sqrt(2)) - 1)
    if method.scale == "dz":
        return float(2 * normal_cdf(x) - 1)
    x = x / 100 if estimate.unit in PERCENT else x
    return min(1.0, max(-1.0, 2 * x - 1 if method.scale == "share" else x))


def _agreeing(value: float, estimate: Estimate, level: float) -> tuple[float | None, float | None, str]:
    """Return an interval where nothing varies: of clusters that count once each and all go one way.

    What resampling cannot estimate is then bounded by the number of clusters alone; any other value has no interval.
    """
    if abs(value) < 1 or not estimate.clusters or estimate.clusters < 2:
        return None, None, ""
    least = 2 * exact_interval(estimate.clusters, estimate.clusters, level)[0] - 1
    return (least, 1.0, BY_CLUSTERS) if value > 0 else (-1.0, -least, BY_CLUSTERS)
