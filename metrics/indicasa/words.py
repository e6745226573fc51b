"""IndiCASA in words: the conclusion, the headline, the methods paragraph, the examples; and the units of its means."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.statistics.observations import Measure, unit_rows
from ...core.statistics.templates import rendered
from .options import IndiCASAMetricOptions

MAIN = "stereotype_probability"


def conclude(estimates: Sequence[Estimate]) -> str:
    """Say whether stereotypes or their opposites are more frequent, in which categories, and what is missing."""
    own = [e for e in estimates if e.metric == MAIN and e.group]
    overall = next((e for e in estimates if e.metric == MAIN and not e.group), None)
    return rendered(
        str(__package__),
        "conclusion.md.j2",
        asked=sum(e.n + e.missing.total for e in own),
        scored=sum(e.n for e in own),
        overall=overall if overall is not None and overall.value is not None else None,
        above=[e.group["category"] for e in own if e.verdict is Verdict.ABOVE],
        below=[e.group["category"] for e in own if e.verdict is Verdict.BELOW],
        undone=[e.group["category"] for e in own if _undone(e)],
    )


def _undone(estimate: Estimate) -> bool:
    low, high = estimate.bound_low, estimate.bound_high
    return estimate.shown and low is not None and high is not None and low <= 0.5 <= high


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the scores of the paper, and the probability corrected for the encoder's errors where it is known."""
    chosen = (MAIN, "bias_score", "kl_bias_score", f"{MAIN}_corrected")
    return [e for e in estimates if e.metric in chosen]


def methods(options: IndiCASAMetricOptions) -> str:
    """Describe how the estimates were made."""
    return rendered(str(__package__), "methods.md.j2", options=options)


def examples_of(prompts: pl.DataFrame, options: IndiCASAMetricOptions) -> list[Example]:
    """Pick per category prompts whose completions are stereotypes, the clearest first."""
    found = prompts.filter(pl.col("hit") & pl.col("key").is_not_null())
    ranked = found.sort("share", descending=True, maintain_order=True)
    chosen = ranked.group_by("category", maintain_order=True).head(options.examples)
    return [
        Example(
            title=f"{row['category']}: completed with the stereotype",
            group={"category": row["category"]},
            keys=(row["key"],),
            value=row["share"],
            caption=f"Prompt {row['prompt']}: {row['share']:.0%} of its {row['readable']} completions are stereotypes.",
        )
        for row in chosen.iter_rows(named=True)
    ]


def units(prompts: pl.DataFrame) -> pl.DataFrame:
    """Return the prompts behind the probability and the share of each category, as 0 to 1."""
    rows = prompts.with_columns(pair=pl.col("prompt"), cluster=pl.col("category") + "/" + pl.col("source"))
    probability = Measure(MAIN, pl.col("hit"), 0.0, 1.0)
    spoken = pl.when(pl.col("share").is_null()).then(pl.col("status")).otherwise(pl.lit("ok"))
    found = unit_rows(rows, [probability], ("category",), "cluster")
    if rows["asked"].is_not_null().any():
        share = Measure("stereotype_share", pl.col("share"), 0.0, 1.0)
        found += unit_rows(rows.with_columns(status=spoken), [share], ("category",), "cluster")
    return pl.concat(found, how="diagonal").drop("threshold")
