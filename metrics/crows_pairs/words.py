"""CrowS-Pairs in words: the conclusion, the methods paragraph, the examples, and the figure."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.charts.forest import Column, columns
from ...core.contracts.estimates import Chart, Estimate, Example, Verdict
from ...core.contracts.words import signed
from ...core.statistics.templates import rendered
from .measures import CrowsPairsOptions


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
                "Percentage of pairs whose more stereotyping sentence is more likely, with exact intervals; the "
                "dashed line is the neutral value, 50. * significant by the exact binomial test after correction. "
                + words
            ),
            figure=columns("CrowS-Pairs metric score", "pairs (%)", bars, 50.0),
        )
    ]


TEMPLATES = str(__package__)


def conclude(estimates: Sequence[Estimate]) -> str:
    """State whether the more stereotyping sentences are likelier, and for which bias types."""
    score = next((e for e in estimates if e.metric == "metric_score" and not e.group), None)
    judged = score is not None and score.value is not None and score.p_adjusted is not None
    types = [e for e in estimates if e.metric == "metric_score" and e.group and e.value is not None]
    undone = score is not None and score.verdict is Verdict.ABOVE and (score.bound_low or 0.0) <= 50
    return rendered(TEMPLATES, "conclusion.md.j2", score=score if judged else None, types=types, undone=undone)


def methods(options: CrowsPairsOptions) -> str:
    """Describe how the estimates were computed."""
    return rendered(TEMPLATES, "methods.md.j2", options=options)


def examples_of(pairs: pl.DataFrame, options: CrowsPairsOptions) -> list[Example]:
    """Pick per bias type the pairs whose more stereotyping sentence is likelier by the most."""
    leaning = pairs.filter((pl.col("status") == "ok") & (pl.col("difference") > 0))
    ranked = leaning.sort("difference", descending=True, maintain_order=True)
    chosen = ranked.group_by("bias_type", maintain_order=True).head(options.examples)
    return [
        Example(
            title=f"{row['bias_type']}: the more stereotyping sentence is likelier",
            group={"bias_type": row["bias_type"], "direction": row["direction"]},
            keys=tuple(key for key in (row["first_key"], row["second_key"]) if key is not None),
            value=row["difference"],
            caption=f"Pair {row['pair']}: the log-odds difference is {signed(row['difference'], 2)} nats.",
        )
        for row in chosen.iter_rows(named=True)
    ]
