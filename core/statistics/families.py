"""Declared families of hypotheses: correct p-values within each, and decide which effects are significant.

The verdict on an estimate is reached once, here; conclusions and figures read the field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..contracts.estimates import Caveat, Estimate, Verdict
from ..contracts.words import WITHIN

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

    An estimate without a p was not tested and does not count. `unit` is the word for the family's members.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, estimate in enumerate(estimates):
        if estimate.p is not None and estimate.test.family:
            members[estimate.test.family].append(index)
    corrected = list(estimates)
    for family, indices in members.items():
        adjusted = adjust([p for i in indices if (p := estimates[i].p) is not None], correction)
        label = f"{family}: {len(indices)} {unit}"
        for index, p in zip(indices, adjusted, strict=True):
            changed = {"p_adjusted": p, "family": label, "correction": NAMES[correction]}
            corrected[index] = estimates[index].replace(**changed)
    return [judge(estimate, alpha) for estimate in corrected]


def judge(estimate: Estimate, alpha: float) -> Estimate:
    """Return the estimate with its verdict; unchanged where nothing was judged.

    Above or below neutral where the corrected p is at most `alpha`; else near it where its facts say that the interval
    lies within the margin (that is not corrected for other tests); else open.
    """
    value, neutral, p = estimate.value, estimate.neutral, estimate.p_adjusted
    within = estimate.facts.get(WITHIN)
    if value is None or neutral is None or (p is None and within is None):
        return estimate
    if p is not None and p <= alpha and value != neutral:
        return estimate.replace(verdict=Verdict.ABOVE if value > neutral else Verdict.BELOW)
    if within:
        return estimate.replace(verdict=Verdict.NEAR, caveats=(*estimate.caveats, Caveat.NOT_CORRECTED))
    return estimate.replace(verdict=Verdict.OPEN)
