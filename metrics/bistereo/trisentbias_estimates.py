"""All estimates of TriSentBias: made, corrected within their families, and marked as the paper marks them."""

from __future__ import annotations

from ...core.contracts.estimates import Estimate, Verdict
from ...core.contracts.records import Scalar
from ...core.statistics.estimates import correct
from ...core.statistics.observations import Group, missing_estimates
from .trisentbias_cells import cell_estimates
from .trisentbias_contrasts import contrast_estimates
from .trisentbias_options import TriSentBiasOptions
from .trisentbias_tally import Tally

MAIN = "main threshold"
"""Fact of the estimates at the threshold of headlines and figures."""
STAR_BINOMIAL = "star (binomial)"
"""The paper's star read as an exact binomial test of pairs, p not corrected, as the paper's caption has it."""
STAR_CLUSTER = "star (cluster permutation)"
"""The same star for a permutation test of whole clusters, p corrected."""


def estimate_all(counts: Tally, options: TriSentBiasOptions) -> list[Estimate]:
    """Return every estimate of a study, corrected within its families."""
    found = [*contrast_estimates(counts, options), *cell_estimates(counts, options)]
    corrected = correct(found, options.correction, options.alpha, "cells")
    marked = [e.replace(facts=e.facts | _marks(e, options)) for e in corrected]
    answered = (int(n) for n in counts.sums[..., 0].sum(axis=0))
    groups = [Group(*cell) for cell in zip(counts.cells, answered, counts.missing, strict=True)]
    return [*marked, *missing_estimates(groups, options.level)]


def _marks(estimate: Estimate, options: TriSentBiasOptions) -> dict[str, Scalar]:
    marks = {
        STAR_BINOMIAL: _star_binomial(estimate, options.alpha),
        STAR_CLUSTER: _star_cluster(estimate),
        MAIN: estimate.group.get("threshold") == options.threshold_main,
    }
    return {name: True for name, holds in marks.items() if holds}


def _star_binomial(estimate: Estimate, alpha: float) -> bool:
    value, p, sentiment = estimate.value, estimate.p, estimate.group.get("sentiment")
    if estimate.metric != "preference" or value is None or p is None or p > alpha:
        return False
    return (sentiment == "positive" and value > 0.5) or (sentiment == "negative" and value < 0.5)


def _star_cluster(estimate: Estimate) -> bool:
    sought = {"positive": Verdict.ABOVE, "negative": Verdict.BELOW}.get(str(estimate.group.get("sentiment")))
    return estimate.metric == "net_preference" and sought is not None and estimate.verdict is sought
