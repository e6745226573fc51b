"""Equivalence tests: shown to be near neutral, shown to differ, or not shown either way.

Two one-sided tests (Schuirmann 1987): a value is shown to be within a margin of neutral at level alpha if its
1 - 2 alpha interval lies inside the margin. That nothing differs significantly is not shown to be near.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ..contracts.records import Scalar
from ..contracts.words import MARGIN, WITHIN
from .arrays import Array
from .cluster import Resampling, Statistics, bootstrap
from .intervals import Ranges
from .permutation import flip_test
from .quantiles import t_sf


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a value is shown to lie within a margin of neutral, with all that rests on."""

    near: bool
    """Whether the 1 - 2 alpha interval lies within the margin."""
    margin: float
    alpha: float
    low: float | None
    high: float | None
    """Ends of the 1 - 2 alpha interval of value less neutral."""
    excludes_neutral: bool
    """The 1 - alpha interval excludes the neutral value. A near value may do so too: it differs, but by little."""

    @property
    def facts(self) -> dict[str, Scalar]:
        """Return the facts that `families.judge` reads; none without an interval, whose caveat says why."""
        return {} if self.low is None else {MARGIN: self.margin, WITHIN: self.near}


class Margin(msgspec.Struct, frozen=True):
    """What counts as near: within `size` of `neutral`, at level `alpha`."""

    size: float
    alpha: float = 0.05
    neutral: float = 0.0


def judge_intervals(narrow: tuple[float, float], wide: tuple[float, float], margin: Margin) -> Equivalence:
    """Judge a 1 - 2 alpha interval (`narrow`) and a 1 - alpha interval (`wide`); NaN shows nothing."""
    low, high = narrow[0] - margin.neutral, narrow[1] - margin.neutral
    defined = bool(np.isfinite([low, high]).all())
    near = bool(defined and -margin.size < low and high < margin.size)
    differs = not wide[0] <= margin.neutral <= wide[1] and bool(np.isfinite(wide).all())
    return Equivalence(
        near=near,
        margin=margin.size,
        alpha=margin.alpha,
        low=low if defined else None,
        high=high if defined else None,
        excludes_neutral=differs,
    )


def equivalence_facts(ends: Array, margin: Margin) -> dict[str, Any]:
    """Return the facts of an estimate, from the ends of the 1 - 2 alpha and the 1 - alpha interval, shape (2, 2)."""
    narrow, wide = (tuple(map(float, pair)) for pair in ends)
    found = judge_intervals((narrow[0], narrow[1]), (wide[0], wide[1]), margin)
    return {"facts": found.facts}


def equivalence(
    sums: Array, statistics: Statistics, plan: Resampling, margin: Margin, ranges: Ranges = ()
) -> list[list[Equivalence]]:
    """Judge each unit and statistic by cluster bootstrap intervals; sums and ranges as for `bootstrap`."""
    levels = (1 - 2 * margin.alpha, 1 - margin.alpha)
    ends = [bootstrap(sums, statistics, msgspec.structs.replace(plan, level=level), ranges) for level in levels]
    narrow, wide = (np.stack(pair, axis=-1) for pair in ends)
    shape = narrow.shape[:2]
    return [[judge_intervals(narrow[u, s], wide[u, s], margin) for s in range(shape[1])] for u in range(shape[0])]


def tost_t(sums: Array, margin: Margin) -> float | None:
    """Return the p of two one-sided t tests of a mean, from counts and sums (clusters, 2); cluster-robust.

    The standard error is that of the ratio of sums with C / (C - 1); t has C - 1 degrees of freedom. With one
    answer per cluster this is the plain one-sample test. None without variation between clusters.
    """
    clusters, total = len(sums), sums.sum(axis=0)
    mean = total[1] / total[0]
    spread = np.sqrt(clusters / max(clusters - 1, 1) * ((sums[:, 1] - mean * sums[:, 0]) ** 2).sum()) / total[0]
    if clusters < 2 or spread <= 0:
        return None
    gaps = (mean - margin.neutral + margin.size, margin.size - mean + margin.neutral)
    return float(max(t_sf(gap / spread, clusters - 1) for gap in gaps))


def tost_flips(sums: Array, plan: Resampling, margin: Margin) -> float | None:
    """Return the p of two one-sided sign-flip tests, about either end of the margin; sums as in `tost_t`.

    Half the two-sided p, as the flips are symmetric; 1 less half of it on the wrong side.
    """
    both = []
    for sign in (1, -1):
        shifted = sums[:, 1] - (margin.neutral - sign * margin.size) * sums[:, 0]
        p = flip_test(np.stack([sums[:, 0], shifted], axis=-1)[:, None, None], plan)[0, 0]
        both.append(p / 2 if sign * shifted.sum() > 0 else 1 - p / 2)
    return float(max(both)) if np.isfinite(both).all() else None
