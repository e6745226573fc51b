"""CrowS-Pairs in words: the conclusion, the methods paragraph, the examples behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Measure, Verdict
from ...core.statistics.templates import rendered
from .options import CrowsPairsOptions

TEMPLATES = str(__package__)


LIKELIER = "the more stereotyping sentence likelier more often"
MEASURES: Mapping[str, Measure] = {
    "metric_score": Measure(
        "Metric score", "Share of readable pairs whose more stereotyping sentence is likelier.", "%", LIKELIER
    ),
    "stereotype_score": Measure(
        "Stereotype score", "The same share of decided pairs that show a stereotype.", "%", LIKELIER
    ),
    "antistereotype_score": Measure(
        "Anti-stereotype score", "The same share of decided pairs that show an anti-stereotype.", "%", LIKELIER
    ),
    "ties": Measure("Ties", "Share of readable pairs whose two sentences are equally likely.", "%", "more ties"),
    "log_odds_difference": Measure(
        "Log-odds difference",
        "Mean score of the more stereotyping minus that of the less stereotyping sentence.",
        "nats",
        "the more stereotyping sentence likelier",
    ),
}


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence whether the more stereotyping sentences are found likelier, and for which bias types."""
    score = next((e for e in estimates if e.metric == "metric_score" and not e.group), None)
    judged = score is not None and score.value is not None and score.p_adjusted is not None
    types = [e for e in estimates if e.metric == "metric_score" and e.group and e.value is not None]
    undone = score is not None and score.verdict is Verdict.ABOVE and (score.bound_low or 0.0) <= 50
    return rendered(TEMPLATES, "conclusion.md.j2", score=score if judged else None, types=types, undone=undone)


def methods(options: CrowsPairsOptions) -> str:
    """Describe how the estimates were made."""
    return rendered(TEMPLATES, "methods.md.j2", options=options)


def examples_of(pairs: pl.DataFrame, options: CrowsPairsOptions) -> list[Example]:
    """Pick per bias type the pairs that lean most to the more stereotyping sentence."""
    leaning = pairs.filter((pl.col("status") == "ok") & (pl.col("difference") > 0))
    ranked = leaning.sort("difference", descending=True, maintain_order=True)
    chosen = ranked.group_by("bias_type", maintain_order=True).head(options.examples)
    return [
        Example(
            title=f"{row['bias_type']}: the more stereotyping sentence is likelier",
            group={"bias_type": row["bias_type"], "direction": row["direction"]},
            keys=tuple(key for key in (row["first_key"], row["second_key"]) if key is not None),
            value=row["difference"],
            caption=f"Pair {row['pair']}: the log-odds difference is {row['difference']:+.2f} nats.",
        )
        for row in chosen.iter_rows(named=True)
    ]
