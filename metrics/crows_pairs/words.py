"""CrowS-Pairs in words: the conclusion, the methods paragraph, the examples behind the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.statistics.options import CrowsPairsOptions
from ...core.statistics.templates import rendered

TEMPLATES = str(__package__)


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
