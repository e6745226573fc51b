"""How often a reader or judge and people agree, for all answers, by the labels of a sample that was drawn in strata.

The strata of a rate are independent samples: their Wilson intervals are joined by MOVER (Zou and Donner 2008), which
needs no variance in a stratum whose labels are all the same. The answers of the run are the population: an interval
carries what is not known because not every answer was labelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ..statistics.intervals import wilson_interval


class Part(msgspec.Struct, frozen=True):
    """The labels of one stratum and verdict."""

    size: int
    """Answers of the population."""
    counts: tuple[int, ...]
    """Labelled answers by label; sampled ones without a label are not among them."""

    @property
    def labelled(self) -> int:
        """Return how many were labelled."""
        return sum(self.counts)


class Rate(msgspec.Struct, frozen=True):
    """A rate with its interval; None where nothing is labelled."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def joint_share(parts: Sequence[Part], label: int, level: float, population: int | None = None) -> Rate:
    """Return the share of the population that is in these parts and has a label.

    Args:
        parts: Strata, or strata by verdict.
        label: Place of the label in the counts.
        level: Of the interval.
        population: Answers that the share is of; by default those of the parts.
    """
    answers = sum(part.size for part in parts) if population is None else population
    seen = sum(part.labelled for part in parts)
    if not answers or not seen:
        return Rate(None, None, None, 0)
    pooled = sum(part.counts[label] for part in parts) / seen
    value = below = above = 0.0
    for part in parts:
        weight, n = part.size / answers, part.labelled
        if not part.size:
            continue
        share = part.counts[label] / n if n else pooled
        low, high = wilson_interval(part.counts[label], n, level)
        # Where every answer is labelled, nothing is uncertain.
        left = 1.0 if not n else max(0.0, 1 - n / part.size)
        value += weight * share
        below += left * (weight * (share - low)) ** 2
        above += left * (weight * (high - share)) ** 2
    share_in_parts = sum(part.size for part in parts) / answers
    low, high = _pooled_interval(parts, value / share_in_parts, level)
    # Rare labels are missed in every stratum at once, for which the parts alone give too short an interval.
    return Rate(
        value,
        max(0.0, min(value - math.sqrt(below), share_in_parts * low)),
        min(share_in_parts, max(value + math.sqrt(above), share_in_parts * high)),
        seen,
    )


def _pooled_interval(parts: Sequence[Part], share: float, level: float) -> tuple[float, float]:
    """Return the interval of a share by the effective size of the sample (Kish 1965), as if strata did not differ."""
    labelled_parts = [part for part in parts if part.size and part.labelled]
    answers = sum(part.size for part in labelled_parts)
    squares = sum((part.size / answers) ** 2 / part.labelled for part in labelled_parts)
    low, high = wilson_interval(share / squares, 1 / squares, level)
    left = math.sqrt(
        sum((p.size / answers) ** 2 * (1 - p.labelled / p.size) / p.labelled for p in labelled_parts) / squares
    )
    return share - left * (share - low), share + left * (high - share)


def agreement_rate(same: Sequence[Part], others: Sequence[Part], label: int, level: float) -> Rate:
    """Return how often the verdict is right where people give a label: its sensitivity, by label.

    The interval is that of a ratio of independent shares (MOVER-R, Donner and Zou 2012), since the verdict splits the
    population.

    Args:
        same: The strata with the verdict that means the label.
        others: The strata with another verdict.
        label: Place of the label in the counts.
        level: Of the interval.
    """
    population = sum(part.size for part in (*same, *others))
    right, wrong = (joint_share(parts, label, level, population) for parts in (same, others))
    if right.value is None or right.low is None or right.high is None:
        return Rate(None, None, None, 0)
    n = sum(part.counts[label] for part in (*same, *others))
    a, a_low, a_high = right.value, right.low, right.high
    b, b_low, b_high = (end or 0.0 for end in (wrong.value, wrong.low, wrong.high))
    if wrong.value is None and any(part.size for part in others):
        b_high = 1.0 - a_low
    if a + b == 0:
        return Rate(None, None, None, n)
    low = high = math.inf
    if b_high > 0:
        inside = max((a * b) ** 2 - a_low * b_high * (2 * a - a_low) * (2 * b - b_high), 0.0)
        low = (a * b - math.sqrt(inside)) / (b_high * (2 * b - b_high)) if 2 * b != b_high else a_low / b_high
    if b_low > 0 and 2 * b != b_low:
        inside = max((a * b) ** 2 - a_high * b_low * (2 * a - a_high) * (2 * b - b_low), 0.0)
        high = (a * b + math.sqrt(inside)) / (b_low * (2 * b - b_low))
    as_share = [1.0 if math.isinf(odds) else max(odds, 0.0) / (1 + max(odds, 0.0)) for odds in (low, high)]
    return Rate(a / (a + b), as_share[0], as_share[1], n)
