"""Declared families of hypotheses: correct p-values within each, and say in words what was shown.

The verdict on an estimate is reached once, here, and stands in its note; conclusions and figures only read it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from ..contracts.estimates import Estimate

Correction = Literal["bh", "by", "holm"]
NAMES: dict[Correction, str] = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli", "holm": "Holm"}
ABOVE = "significant above neutral"
BELOW = "significant below neutral"


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
    """Correct every estimate that has a p within its `family`, name the family's size, and note what was shown.

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
    """Note on which side of its neutral value an estimate lies, if the adjusted p is at most `alpha`."""
    value, neutral, p = estimate.value, estimate.neutral, estimate.p_adjusted
    if value is None or neutral is None or p is None or p > alpha or value == neutral:
        return estimate
    return tag(estimate, ABOVE if value > neutral else BELOW)


def tag(estimate: Estimate, *words: str) -> Estimate:
    """Return the estimate with `words` added to its note, separated by semicolons."""
    return estimate.replace(note="; ".join(filter(None, [estimate.note, *words])))


def tagged(estimate: Estimate, words: str) -> bool:
    """Say whether `words` is one of the notes of the estimate."""
    return words in estimate.note.split("; ")


def tag_if(estimates: Sequence[Estimate], words: str, holds: Callable[[Estimate], bool]) -> list[Estimate]:
    """Add `words` to the note of each estimate for which `holds`."""
    return [tag(estimate, words) if holds(estimate) else estimate for estimate in estimates]


def p_in_words(p: float | None) -> str:
    """Write a p-value for a sentence; never as 0."""
    return "undefined" if p is None else "below 0.001" if p < 0.001 else f"{p:.3f}"
