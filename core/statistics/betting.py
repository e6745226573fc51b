"""Bounds on a mean of bounded answers that hold at every look: capital of bets that the mean is another.

Units, such as templates, are asked one after another in random order. A bet against "the mean is at most m" wins where
a unit's answers are above m. If the mean is at most m, the capital is a non-negative supermartingale that begins at 1,
so it ever reaches 1/alpha with probability alpha at most (Ville). The values of m that are not refuted are a confidence
sequence: it may be looked at after every unit, and a run may end for that.

Each bet is on the side where the units before it lie, as a share of capital that follows from their sums (aGRAPA). So
it holds for units drawn from a population and also for a random order of a fixed set: there, units above the mean leave
units below it. Units of unequal size add their sums: the mean is that of answers, and not of units.

Source: Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, sections 4 and 5,
appendix B.3; the sums of unequal units and the side of the bets are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, log

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
MOST_BET = 0.75
"""Share of capital that a bet may lose at most."""
CAUTION = 0.2
"""Squared gain, of a unit of typical size, that is added to what was seen: the first bets are small."""
STEPS = 1000
"""Values of a mean that are tried, besides those that are asked about."""
AT_ONCE = 2_000_000
"""Numbers in memory at a time."""


class Bounds(msgspec.Struct, frozen=True):
    """A confidence sequence at its last look; either end is missed with half of the error."""

    low: float
    high: float
    value: float | None
    """The mean as it is; None without an answer."""
    units: int
    """Units with an answer."""


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of answers in units, in the order in which they were asked."""

    sums: Array
    """Sum of the answers of each unit."""
    sizes: Array
    """Number of its answers; 0: none could be read."""
    least: float
    greatest: float
    """What an answer can be."""
    most: float
    """The largest number of answers of a unit that the design has."""
    typical: float
    """Their mean number, by the design."""

    @property
    def value(self) -> float | None:
        """Return the mean of the answers."""
        count = float(self.sizes.sum())
        return float(self.sums.sum()) / count if count else None


class Evidence(msgspec.Struct, frozen=True):
    """The greatest log capital so far against each of some values of the mean."""

    values: Array
    above: Array
    """Of bets that the mean is above the value."""
    below: Array

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Return the two bounds, each wrong with probability `alpha` at most, over all looks.

        A value is refuted only if all values beyond it are, too: what is refuted is a set without holes.
        """
        wanted = log(1 / alpha)
        low, high = float(self.values[0]), float(self.values[-1])
        if refuted := _first(self.above < wanted):
            low = float(np.nextafter(self.values[refuted - 1], inf))
        if refuted := _first(self.below[::-1] < wanted):
            high = float(np.nextafter(self.values[len(self.values) - refuted], -inf))
        # Both ends refute the same value only where the bounds are wrong, or answers are all alike at an end.
        return (low, high) if low <= high else (high, low)


def _first(kept: npt.NDArray[np.bool_]) -> int:
    """Return the place of the first value that is kept; the last one always is."""
    return int(kept.argmax()) if kept.any() else len(kept) - 1


def evidence_of(mean: Mean, values: Iterable[float] = (), steps: int = STEPS) -> Evidence:
    """Return the evidence against a grid of means, and against some values exactly.

    Args:
        mean: the units in order.
        values: values to try besides those of the grid.
        steps: steps of the grid; 1 tries the values alone.
    """
    own = [value for value in values if mean.least < value < mean.greatest]
    tried = np.unique(np.concatenate([np.linspace(mean.least, mean.greatest, steps + 1), own]))
    above, below = np.zeros(len(tried)), np.zeros(len(tried))
    if len(mean.sums):
        width = max(1, AT_ONCE // len(mean.sums))
        for start in range(0, len(tried), width):
            part = slice(start, start + width)
            above[part], below[part] = _capital(mean, tried[part])
    return Evidence(tried, above, below)


def _capital(mean: Mean, values: Array) -> tuple[Array, Array]:
    """Return the greatest log capital of the bets above and below each value."""
    span = mean.greatest - mean.least
    gain = (mean.sums[:, None] - mean.sizes[:, None] * values) / (mean.most * span)
    sums, squares = (np.vstack([np.zeros_like(values), np.cumsum(own, axis=0)[:-1]]) for own in (gain, gain**2))
    bet = sums / (squares + CAUTION * (mean.typical / mean.most) ** 2)
    found = []
    for side, worst in ((1.0, values - mean.least), (-1.0, mean.greatest - values)):
        most = MOST_BET / np.maximum(worst / span, 1e-3)
        share = np.clip(side * bet, 0.0, most)
        found.append(np.maximum(np.cumsum(np.log1p(share * side * gain), axis=0).max(axis=0), 0.0))
    return found[0], found[1]


def bounds_of(means: Sequence[Mean], alpha: float, values: Iterable[float] = (), steps: int = STEPS) -> Bounds:
    """Return the confidence sequence of a mean, or of the first mean minus the second.

    Of a difference of means over different units, each mean has half of the error.

    Args:
        means: one or two.
        alpha: the probability that either end is ever wrong, both together.
        values: values that the bounds are to be exact at, such as a threshold; of one mean.
        steps: of the grid.
    """
    return bounds_by(means, evidence_on(means, values, steps), alpha)


def evidence_on(means: Sequence[Mean], values: Iterable[float] = (), steps: int = STEPS) -> tuple[Evidence, ...]:
    """Return the evidence on each of one or two means, which holds for bounds of every level; as in `bounds_of`."""
    return (evidence_of(means[0], values, steps),) if len(means) == 1 else tuple(map(evidence_of, means))


def bounds_by(means: Sequence[Mean], evidence: Sequence[Evidence], alpha: float) -> Bounds:
    """Return the confidence sequence by the evidence on the means; as `bounds_of`."""
    if len(means) == 1:
        (mean,), (own,) = means, evidence
        return Bounds(*own.bounds(alpha / 2), mean.value, int((mean.sizes > 0).sum()))
    (first, second), (one, two) = means, (own.bounds(alpha / 4) for own in evidence)
    known = first.value is not None and second.value is not None
    value = first.value - second.value if known else None  # type: ignore[operator]  # known
    units = sum(int((own.sizes > 0).sum()) for own in means)
    return Bounds(one[0] - two[1], one[1] - two[0], value, units)
