"""The figure of CrowS-Pairs: the metric score by bias type."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.charts.forest import Column, columns
from ...core.contracts.estimates import Chart, Estimate


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return one chart of bars by bias type, the whole set first; none without scores."""
    scores = [e for e in estimates if e.metric == "metric_score"]
    if not scores:
        return []
    bars = [
        Column(
            f"{e.group.get('bias_type', 'all pairs')} (n = {e.n:,})",
            e.value,
            e.low,
            e.high,
            "*" if e.shown else "",
        )
        for e in scores
    ]
    words = " ".join(f"{b.label}: {b.value:.1f}." if b.value is not None else f"{b.label}: no data." for b in bars)
    return [
        Chart(
            name="crows-pairs-scores",
            title="Metric score by bias type",
            caption=(
                "Percentage of pairs whose more stereotyping sentence is likelier, with exact intervals; the dashed "
                "line is 50, no lean either way. * significant by the exact binomial test after correction. " + words
            ),
            figure=columns("CrowS-Pairs metric score", "pairs (%)", bars, 50.0),
        )
    ]
