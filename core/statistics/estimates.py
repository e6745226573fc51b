"""Estimates: options, parts of a row, correction within families, and the verdict.

The verdict on an estimate is reached once, by `judge`; conclusions and figures read the field.

A value is shown to be within a margin of neutral where its whole interval is: two one-sided tests (Schuirmann 1987) at
half of 1 - level. That nothing differs significantly does not show that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..contracts import Options
from ..contracts.errors import UsageError
from ..contracts.estimates import Caveat, Estimate
from ..contracts.sizes import judge_within
from ..contracts.words import MARGIN, SMALLEST_P
from .resampling import METHODS, Method, Resampling, smallest_p

Correction = Literal["bh", "by", "holm"]
NAMES: dict[Correction, str] = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli", "holm": "Holm"}


def adjust(p_values: Sequence[float], correction: Correction) -> list[float]:
    """Return the adjusted p-values in the order given."""
    if not p_values:
        return []
    p = np.asarray(p_values, dtype=np.float64)
    order, ranks = np.argsort(p), np.arange(1, len(p) + 1)
    if correction == "holm":
        stepped = np.maximum.accumulate(p[order] * ranks[::-1])
    else:  # as scipy.stats.false_discovery_control
        scaled = p[order] * (len(p) / ranks) * (np.sum(1 / ranks) if correction == "by" else 1)
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def correct(estimates: Sequence[Estimate], correction: Correction, alpha: float, unit: str) -> list[Estimate]:
    """Correct every estimate that has a p within its `family`, name the family's size, and judge it.

    An estimate without a p was not tested and does not count. `unit` is the word for its members.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, estimate in enumerate(estimates):
        if estimate.p is not None and estimate.test.family:
            members[estimate.test.family].append(index)
    corrected = list(estimates)
    for family, indices in members.items():
        adjusted = adjust([p for i in indices if (p := estimates[i].p) is not None], correction)
        label = f"{family}: {len(indices):,} {unit}" if len(indices) > 1 else f"{family}: 1 test"
        for index, p in zip(indices, adjusted, strict=True):
            changed = {"p_adjusted": p, "family": label, "correction": NAMES[correction]}
            corrected[index] = estimates[index].replace(**changed)
    return [judge(estimate, alpha) for estimate in corrected]


def judge(estimate: Estimate, alpha: float) -> Estimate:
    """Return the estimate with its verdict; unchanged where nothing was judged.

    Near neutral where the whole interval lies within the margin among its facts; else above or below it where the
    corrected p is at most `alpha`; else open.
    """
    value, neutral, p = estimate.value, estimate.neutral, estimate.p_adjusted
    margin = estimate.facts.get(MARGIN)
    if value is None or neutral is None or (p is None and (margin is None or estimate.low is None)):
        return estimate
    limit = float(margin) if isinstance(margin, int | float) else None
    return judge_within(estimate, limit, significant=p is not None and p <= alpha and value != neutral)


POINTS = "percentage points"
FEW = 10
"""Below so many clusters, 95 % intervals cover as little as 90 %."""


def undefined(why: str) -> dict[str, Any]:
    """Return the caveat of an estimate without a value, and the note that says why."""
    return {"caveats": (Caveat.UNDEFINED,), "note": why}


def interval_caveats(clusters: int, low: float | None) -> tuple[Caveat, ...]:
    """Return what to know of an interval over so many clusters, or why there is none (`docs/calibration.md`)."""
    if low is not None:
        return (Caveat.FEW_CLUSTERS,) if clusters < FEW else ()
    return (Caveat.ONE_CLUSTER if clusters < 2 else Caveat.NO_VARIATION,)


def floor_of_p(clusters: int, resamples: int, alpha: float) -> dict[str, Any]:
    """Return the caveat of a permutation test that so few clusters keep from ever being significant."""
    least = smallest_p(clusters, resamples)
    return {"caveats": (Caveat.P_FLOOR,), "facts": {SMALLEST_P: least}} if least > alpha else {}


TOGETHER = "significant_only_together"
"""Fact: of a family of tests, so many must have the smallest possible p for any of them to be significant."""


def fewest_together(clusters: int, tests: int, options: TestingOptions) -> dict[str, Any]:
    """Return what so few clusters keep from being significant in a family of sign-flip tests: a lone effect.

    The smallest p of a sign-flip test is multiplied by the size of its family, so that with few clusters one effect
    among many tests is never significant after correction, however large it is. Nothing where a lone one can be.
    """
    least = smallest_p(clusters, options.resamples) if clusters else 1.0

    def adjusted(count: int) -> float:
        return adjust([least] * count + [1.0] * (tests - count), options.correction)[0]

    if not tests or adjusted(1) <= options.alpha:
        return {}
    together = next((count for count in range(2, tests + 1) if adjusted(count) <= options.alpha), tests + 1)
    return {"caveats": (Caveat.P_FLOOR,), "facts": {SMALLEST_P: least, TOGETHER: together}}


def number(value: float) -> float | None:
    """Return a float, or None for what is undefined."""
    return float(value) if math.isfinite(value) else None


def tested(name: str, p: float, clusters: int, options: TestingOptions) -> dict[str, Any]:
    """Return a permutation test of whole clusters; nothing where it is undefined."""
    return (
        {"test": name, "p": float(p), **floor_of_p(clusters, options.resamples, options.alpha)}
        if math.isfinite(p)
        else {}
    )


def merge(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merge parts of an estimate; caveats and facts are kept side by side."""
    merged = {key: value for part in parts for key, value in part.items()}
    caveats = tuple(caveat for part in parts for caveat in part.get("caveats", ()))
    facts = {name: value for part in parts for name, value in part.get("facts", {}).items()}
    return {**merged, "caveats": caveats, "facts": facts}


class TestingOptions(Options, frozen=True, kw_only=True):
    """How to resample, test and correct p-values."""

    alpha: float = 0.05
    """Largest adjusted p-value that is significant."""
    level: float = 0.95
    """Confidence level of every interval."""
    intervals: Method = "percentile"
    """How intervals are made: `percentile` or `bca` of the cluster bootstrap, or `jackknife` (few clusters)."""
    resamples: int = 9999
    """Bootstrap resamples, and the most arrangements of a permutation test."""
    seed: int = 0
    correction: Correction = "bh"
    """Correction of p-values for several tests."""
    examples: int = 3
    """Pairs to show per group and direction."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        for name, value in (("alpha", self.alpha), ("level", self.level)):
            if not 0 < value < 1:
                raise UsageError(f"{name} is {value}. Give a number between 0 and 1.", code="options.value")
        if self.resamples < 99:
            raise UsageError(
                f"resamples is {self.resamples}. Give at least 99; 9999 is the default.", code="options.value"
            )
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}. Give 0 or more.", code="options.value")
        if self.intervals not in METHODS:
            raise UsageError(
                f"intervals is {self.intervals!r}. Choose one of {', '.join(map(repr, METHODS))}.",
                code="options.choice",
            )
        if self.correction not in NAMES:
            raise UsageError(
                f"correction is {self.correction!r}. Choose one of {', '.join(map(repr, NAMES))}.",
                code="options.choice",
            )

    @property
    def plan(self) -> Resampling:
        """Return how to resample."""
        return Resampling(self.resamples, self.seed, self.level, self.intervals)

    @property
    def interval(self) -> str:
        """Return the name of the intervals."""
        return METHODS[self.intervals]


class MarginOptions(TestingOptions, frozen=True, kw_only=True):
    """The same, for a metric that can test whether a difference in percent is equivalent to neutral."""

    margin: float | None = None
    """Margin of the equivalence test, in percentage points around neutral. None: no such test."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        if self.margin is not None and not 0 < self.margin < 100:
            raise UsageError(
                f"margin is {self.margin}. Give percentage points above 0 and below 100.", code="options.value"
            )
