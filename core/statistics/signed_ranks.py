"""Wilcoxon's signed-rank test, quick where there are few differences with ties."""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .scipy_stats import stats

FEW = 13
"""Up to so many differences scipy tries every pattern of signs if any are tied: one call each, up to 8,192 of them."""
SLACK = 1e-9


def signed_ranks(differences: Array) -> tuple[float, float]:
    """Return the statistic and the two-sided p of `scipy.stats.wilcoxon` for differences other than 0.

    Up to `FEW` of them all patterns of signs are tried at once, which gives the same p in a thousandth of the time.
    """
    if len(differences) > FEW:
        found = stats.wilcoxon(differences)
        return float(found.statistic), float(found.pvalue)
    ranks = stats.rankdata(np.abs(differences))
    signs = (np.arange(1 << len(ranks))[:, None] >> np.arange(len(ranks))) & 1
    above, whole = float(ranks[differences > 0].sum()), float(ranks.sum())
    statistic = min(above, whole - above)
    beyond = float((signs @ ranks <= statistic + SLACK).mean())
    return statistic, min(1.0, 2 * beyond)
