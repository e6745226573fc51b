"""What labels of a random sample say of all answers: agreement of a reader or judge with people, and shares corrected.

A sample is drawn within strata, and every answer of the population has a verdict. Within each stratum the labels are
set apart by verdict, whose counts are known: with a verdict of levels this is the prediction-powered estimator (PPI++,
Angelopoulos, Duchi and Zrnic 2023) at its best weight, and equals the post-stratified one (Sarndal, Swensson and
Wretman 1992, section 7.6). The parts of a share are proportions of independent samples; their Wilson intervals are
joined by MOVER (Zou and Donner 2008), which needs no variance in a part whose labels are all the same. `ppi_mean` is
for verdicts that are numbers.

The answers of the run are the population: an interval carries what is not known because not every answer was labelled.
With `spread` it carries as well that the answers are draws of a model; else it does not generalise beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from .intervals import Array, normal_isf, t_isf, wilson_interval

FEWEST = 10
"""Labels of a stratum that a mean of numbers needs: with fewer, the weight of the verdicts is a guess."""


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


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """A share by the verdict alone, and corrected by labels."""

    raw: float | None
    """None: no verdict means the label."""
    value: float | None
    low: float | None
    high: float | None
    labelled: int
    population: int
    unlabelled_parts: int = 0
    """Strata without a label, about which nothing is assumed: the interval takes any share there."""


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
    whole = sum(part.size for part in parts) if population is None else population
    seen = sum(part.labelled for part in parts)
    if not whole or not seen:
        return Rate(None, None, None, 0)
    pooled = sum(part.counts[label] for part in parts) / seen
    value = below = above = 0.0
    for part in parts:
        weight, n = part.size / whole, part.labelled
        if not part.size:
            continue
        share = part.counts[label] / n if n else pooled
        low, high = wilson_interval(part.counts[label], n, level)
        # Where every answer is labelled, nothing is uncertain.
        left = 1.0 if not n else max(0.0, 1 - n / part.size)
        value += weight * share
        below += left * (weight * (share - low)) ** 2
        above += left * (weight * (high - share)) ** 2
    held = sum(part.size for part in parts) / whole
    low, high = _alike(parts, value / held, level)
    # Rare labels are missed in every stratum at once, for which the parts alone give too short an interval.
    return Rate(
        value,
        max(0.0, min(value - math.sqrt(below), held * low)),
        min(held, max(value + math.sqrt(above), held * high)),
        seen,
    )


def _alike(parts: Sequence[Part], share: float, level: float) -> tuple[float, float]:
    """Return the interval of a share by the effective size of the sample (Kish 1965), as if strata did not differ."""
    known = [part for part in parts if part.size and part.labelled]
    whole = sum(part.size for part in known)
    squares = sum((part.size / whole) ** 2 / part.labelled for part in known)
    low, high = wilson_interval(share / squares, 1 / squares, level)
    left = math.sqrt(sum((p.size / whole) ** 2 * (1 - p.labelled / p.size) / p.labelled for p in known) / squares)
    return share - left * (share - low), share + left * (high - share)


def corrected_share(
    verdicts: Sequence[Sequence[Part]],
    label: int,
    raw: float | None,
    level: float,
    *,
    random: bool,
    spread: float = 0.0,
) -> Corrected:
    """Return the share of answers with a label, corrected for the verdicts that people do not share.

    Args:
        verdicts: By verdict, the strata of the population with it, and the labels of their random samples.
        label: Place of the label in the counts.
        raw: The share by the verdict alone; None if no verdict means the label.
        level: Of the interval.
        random: Whether the labelled answers were drawn at random within their strata.
        spread: Variance of the share over draws of as many answers, such as that of a cluster bootstrap; 0: the
            interval is for the answers of the run.

    Raises:
        UsageError: the labelled answers are no random sample.
    """
    if not random:
        raise UsageError(
            "the labelled answers were not drawn at random, so they say nothing of the others. Draw a sample, or "
            "correct by an error matrix that is known from elsewhere (Rogan and Gladen).",
            code="annotation.not-random",
        )
    parts = [part for own in verdicts for part in own]
    population, labelled = sum(part.size for part in parts), sum(part.labelled for part in parts)
    unlabelled = sum(1 for part in parts if part.size and not part.labelled)
    kept = Corrected(
        raw=raw, value=None, low=None, high=None, labelled=labelled, population=population, unlabelled_parts=unlabelled
    )
    if not labelled:
        return kept
    value, below, above = 0.0, spread * _reach(level) ** 2, spread * _reach(level) ** 2
    for own in verdicts:
        held = sum(part.size for part in own) / population
        rate = joint_share(own, label, level, population)
        # A verdict of which nothing is labelled may mean the label anywhere from never to always.
        middle, low, high = (held / 2, 0.0, held) if rate.value is None else (rate.value, rate.low, rate.high)
        value += middle
        below += (middle - (low or 0.0)) ** 2
        above += ((held if high is None else high) - middle) ** 2
    low, high = max(0.0, value - math.sqrt(below)), min(1.0, value + math.sqrt(above))
    return msgspec.structs.replace(kept, value=value, low=low, high=high)


def _reach(level: float) -> float:
    return float(normal_isf((1 - level) / 2))


def difference(first: Corrected, second: Corrected) -> Rate:
    """Return the difference of two independent shares with its interval, by MOVER."""
    known = (first.value, first.low, first.high, second.value, second.low, second.high)
    if any(one is None for one in known):
        return Rate(None, None, None, 0)
    a, a_low, a_high, b, b_low, b_high = (float(one) for one in known if one is not None)
    low, high = math.hypot(a - a_low, b_high - b), math.hypot(a_high - a, b - b_low)
    return Rate(a - b, max(-1.0, a - b - low), min(1.0, a - b + high), first.labelled + second.labelled)


def agreement_rate(own: Sequence[Part], others: Sequence[Part], label: int, level: float) -> Rate:
    """Return how often the verdict is right where people give a label: its sensitivity, by label.

    The interval is that of a ratio of independent shares (MOVER-R, Donner and Zou 2012), since the verdict splits the
    population.

    Args:
        own: The strata with the verdict that means the label.
        others: The strata with another verdict.
        label: Place of the label in the counts.
        level: Of the interval.
    """
    population = sum(part.size for part in (*own, *others))
    right, wrong = (joint_share(parts, label, level, population) for parts in (own, others))
    if right.value is None or right.low is None or right.high is None:
        return Rate(None, None, None, 0)
    n = sum(part.counts[label] for part in (*own, *others))
    a, a_low, a_high = right.value, right.low, right.high
    b, b_low, b_high = (one or 0.0 for one in (wrong.value, wrong.low, wrong.high))
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


def rogan_gladen(
    share: float, n: int, sensitivity: tuple[int, int], specificity: tuple[int, int], level: float
) -> Rate:
    """Return a share corrected by an error matrix from elsewhere (Rogan and Gladen 1978).

    The interval is that of Lang and Reiczigel (2014), which carries the uncertainty of the matrix.

    Args:
        share: By the verdict alone.
        n: Answers that it is of.
        sensitivity: (right, all) of answers that have the label.
        specificity: (right, all) of answers that have not.
        level: Of the interval.

    Raises:
        UsageError: the verdict is no better than chance, so nothing can be corrected by it.
    """
    z = _reach(level)
    (hits, positives), (passes, negatives) = sensitivity, specificity
    if not n or not positives or not negatives or hits / positives + passes / negatives <= 1:
        raise UsageError(
            f"a sensitivity of {hits} of {positives} and a specificity of {passes} of {negatives} are no better than "
            "chance: nothing can be corrected by them.",
            code="annotation.matrix",
        )
    value = (share + passes / negatives - 1) / (hits / positives + passes / negatives - 1)
    more, sure, clear = n + z * z, positives + 2, negatives + 2
    p, se, sp = (share * n + z * z / 2) / more, (hits + 1) / sure, (passes + 1) / clear
    scale = se + sp - 1
    if scale <= 0:
        return Rate(min(max(value, 0.0), 1.0), 0.0, 1.0, n)
    middle = (p + sp - 1) / scale
    shift = 2 * z * z * (middle * se * (1 - se) / sure - (1 - middle) * sp * (1 - sp) / clear)
    variance = p * (1 - p) / more + middle**2 * se * (1 - se) / sure + (1 - middle) ** 2 * sp * (1 - sp) / clear
    half = z * math.sqrt(variance) / scale
    ends = [min(max(end, 0.0), 1.0) for end in (middle + shift - half, middle + shift + half)]
    return Rate(min(max(value, 0.0), 1.0), ends[0], ends[1], n)


def ppi_mean(
    labels: Array, verdicts: Array, strata: Array, sizes: Array, means: Array, level: float, spread: float = 0.0
) -> Rate:
    """Return the mean label of a population by PPI++ under stratified sampling, for verdicts that are numbers.

    The weight of the verdicts is the one of least variance (power tuning), kept between 0 and 1.

    Args:
        labels: Shape (labelled,).
        verdicts: Shape (labelled,).
        strata: Shape (labelled,), the stratum of each, from 0.
        sizes: Shape (strata,), answers of the population.
        means: Shape (strata,), mean verdict of the population.
        level: Of the interval.
        spread: As in `corrected_share`.

    Raises:
        UsageError: a stratum has fewer than ten labels.
    """
    counts = np.bincount(strata, minlength=len(sizes))
    if (short := (sizes > 0) & (counts < np.minimum(FEWEST, sizes))).any():
        raise UsageError(
            f"{int(short.sum())} strata have fewer than {FEWEST} labels. Label more, or draw with fewer strata.",
            code="annotation.few",
        )
    weights = sizes / sizes.sum()
    scale = weights**2 * np.maximum(1 - counts / np.maximum(sizes, 1), 0) / np.maximum(counts, 1)
    both, own = np.zeros(len(sizes)), np.zeros(len(sizes))
    for stratum in np.flatnonzero(counts > 1):
        inside = strata == stratum
        found = np.cov(labels[inside], verdicts[inside])
        both[stratum], own[stratum] = found[0, 1], found[1, 1]
    below = float((scale * own).sum())
    power = min(max(float((scale * both).sum()) / below, 0.0), 1.0) if below > 0 else 0.0
    rest = labels - power * verdicts
    value, variance, freedom = 0.0, float(spread), 0
    for stratum in np.flatnonzero(sizes > 0):
        inside = rest[strata == stratum]
        value += float(weights[stratum] * (power * means[stratum] + inside.mean()))
        if len(inside) > 1:
            variance += float(scale[stratum] * inside.var(ddof=1))
        freedom += len(inside) - 1
    half = float(t_isf((1 - level) / 2, max(freedom, 1))) * math.sqrt(variance)
    return Rate(value, value - half, value + half, len(labels))
