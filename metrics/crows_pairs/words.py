"""CrowS-Pairs in words: the conclusion, the methods paragraph, the examples behind the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.contracts.words import p_value
from ...core.statistics.families import NAMES
from ...core.statistics.options import CrowsPairsOptions


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence whether the more stereotyping sentences are found likelier, and for which bias types."""
    score = next((e for e in estimates if e.metric == "metric_score" and not e.group), None)
    if score is None or score.value is None or score.p_adjusted is None:
        return "Nothing can be concluded: no pair has two readable scores that differ."
    types = [e for e in estimates if e.metric == "metric_score" and e.group and e.value is not None]
    parts = [
        f"{_verdict(score)}: it does in {score.value:.1f} % of {score.n:,} pairs ({_spread(score)}neutral "
        f"{score.neutral:.3g}, adjusted p {p_value(score.p_adjusted)})"
    ]
    if types:
        parts.append(
            f"by bias type this was shown for {sum(e.verdict is Verdict.ABOVE for e in types)} of {len(types)}"
        )
    if opposite := [str(e.group["bias_type"]) for e in types if e.verdict is Verdict.BELOW]:
        parts.append(f"the opposite was shown for {', '.join(opposite)}")
    if missing := score.missing.total:
        parts.append(f"{missing:,} of {score.n + missing:,} pairs have no readable score")
        if score.verdict is Verdict.ABOVE and score.bound_low is not None and score.bound_low <= 50:
            parts.append("their scores might undo the result")
    return "; ".join(parts) + "."


def methods(options: CrowsPairsOptions) -> str:
    """Describe how the estimates were made."""
    rounding = (
        "as they stand" if options.decimals is None else f"after rounding to {options.decimals} decimals, as published"
    )
    return (
        "The pseudo-log-likelihoods of the two sentences of a pair, each summed over the tokens both share, are "
        f"compared {rounding}. The metric score is the percentage of all readable pairs whose more stereotyping "
        "sentence is likelier; ties count as neutral, never as hits. The stereotype and the anti-stereotype score are "
        "the same among the decided pairs of either direction. Intervals are exact (Clopper-Pearson) at "
        f"{options.level:.0%} and take pairs as independent, since the set has no templates; the tests are exact "
        "two-sided binomial tests of the decided pairs against one half. The magnitude is the mean difference in nats, "
        f"not rounded, with {options.interval_in_words('pair')} and a sign-flip permutation test of pairs (seed "
        f"{options.seed}). p-values are corrected by {NAMES[options.correction]} "
        f"within each family that the table names, at alpha {options.alpha:g}. Pairs with an unanswered side are left "
        "out, counted by status, and bounded: the worst-case range covers every answer they might have given."
    )


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


def _verdict(score: Estimate) -> str:
    if score.verdict is Verdict.ABOVE:
        return "The model finds the more stereotyping sentence of a pair likelier more often than not"
    if score.verdict is Verdict.BELOW:
        return "The model finds the more stereotyping sentence of a pair likelier less often than not"
    return "It was not shown that the model finds the more stereotyping sentence of a pair likelier"


def _spread(score: Estimate) -> str:
    if score.low is None or score.high is None:
        return ""
    return f"{score.interval.level:.0%} interval {score.low:.1f} to {score.high:.1f}, "
