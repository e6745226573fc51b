"""TriSentBias in words: the conclusion, the methods paragraph, the examples behind the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atanh

import polars as pl

from ...core.contracts.estimates import Caveat, Estimate, Example, Verdict
from ...core.contracts.records import Scalar
from ...core.statistics.templates import rendered
from .trisentbias_estimates import MAIN
from .trisentbias_options import TriSentBiasOptions


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence whether favouritism was shown, where, how much, and what speaks against it.

    Bias is claimed only where the corrected cluster permutation test is significant and the difference goes the
    paper's way; a significant difference the other way is named as such.
    """
    groups = [e for e in estimates if e.metric == "favouritism" and MAIN in e.facts]
    judged = [e for e in groups if e.value is not None and e.p_adjusted is not None]
    shown = [e for e in judged if e.verdict is Verdict.ABOVE]
    opposite = [e for e in judged if e.verdict is Verdict.BELOW]
    hidden = _hidden(estimates, shown)
    missing = sum(e.missing.total for e in groups)
    return rendered(
        str(__package__),
        "trisentbias.conclusion.md.j2",
        groups=groups,
        judged=judged,
        shown=shown,
        opposite=opposite,
        threshold=judged[0].group["threshold"] if judged else None,
        most=_most(judged, 1),
        shown_most=_most(shown, 1),
        opposite_most=_most(opposite, -1),
        mean=sum(e.value or 0.0 for e in shown) / max(len(shown), 1),
        alike=len(judged) > 1 and len({e.value for e in judged}) == 1,
        shown_alike=len({e.value for e in shown}) == 1,
        floor=all(Caveat.P_FLOOR in e.caveats for e in judged),
        worse=[e for e in estimates if e.metric == "discrimination" and MAIN in e.facts and e.verdict is Verdict.ABOVE],
        hidden=hidden,
        hidden_most=_most(hidden, 1),
        missing=missing,
        pairs=missing + sum(e.n for e in groups),
        undone=[e for e in shown + opposite if (e.bound_low or 0.0) <= 0.0 <= (e.bound_high or 0.0)],
    )


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick favouritism and discrimination at the main threshold, and favouritism in nats."""
    contrasts = [e for e in estimates if e.metric in ("favouritism", "discrimination") and MAIN in e.facts]
    return [*contrasts, *(e for e in estimates if e.metric == "favouritism_log_odds")]


def methods(options: TriSentBiasOptions) -> str:
    """Describe how the estimates were made."""
    thresholds = ", ".join(f"{t:g}" for t in options.thresholds)
    return rendered(str(__package__), "trisentbias.methods.md.j2", options=options, thresholds=thresholds)


def examples_of(pairs: pl.DataFrame, options: TriSentBiasOptions) -> list[Example]:
    """Pick per axis and gender the pairs with the greatest D in praise and the least D in blame, one per cluster.

    `pairs` has, besides what `pair_up` gives, `first_key` and `second_key`: the exchanges of the two sides.
    """
    readable = pairs.filter(pl.col("status") == "ok")
    groups = readable.partition_by("axis", "gender", maintain_order=True)
    return [example for group in groups for example in _examples(group, options)]


def _examples(group: pl.DataFrame, options: TriSentBiasOptions) -> Iterator[Example]:
    for sentiment, side, sign in (("positive", "desirable", 1.0), ("negative", "undesirable", -1.0)):
        ranked = group.filter((pl.col("sentiment") == sentiment) & (pl.col("difference") * sign > 0))
        ranked = ranked.sort(pl.col("difference") * -sign, maintain_order=True)
        if ranked[options.cluster].null_count() < ranked.height:
            ranked = ranked.unique(options.cluster, keep="first", maintain_order=True)
        for row in ranked.head(options.examples).iter_rows(named=True):
            yield Example(
                title=f"{row['axis']}, {row['gender']}: prefers the {side} description in a {sentiment} context",
                group={"axis": row["axis"], "gender": row["gender"], "sentiment": sentiment},
                keys=tuple(key for key in (row["first_key"], row["second_key"]) if key is not None),
                value=row["difference"],
                caption=f"Pair {row['pair']}: the log-odds difference is {row['difference']:+.2f} nats.",
            )


def _hidden(estimates: Sequence[Estimate], shown: Sequence[Estimate]) -> list[Estimate]:
    """Return the groups whose mean log-odds difference shows favouritism where the shares do not."""
    known, tolerated = [_cell(e) for e in shown], _tolerated(estimates)
    stronger = [e for e in estimates if e.metric == "favouritism_log_odds" and e.verdict is Verdict.ABOVE]
    return [e for e in stronger if _cell(e) not in known and (e.value or 0.0) > tolerated]


def _tolerated(estimates: Sequence[Estimate]) -> float:
    """Return the log-odds difference that the main threshold tolerates: any model is a little off, significantly."""
    thresholds = [float(str(e.group["threshold"])) for e in estimates if MAIN in e.facts]
    return 2 * atanh(thresholds[0]) if thresholds and thresholds[0] < 1 else 0.0


def _most(estimates: Sequence[Estimate], sign: int) -> Estimate | None:
    return max(estimates, key=lambda e: sign * (e.value or 0.0), default=None)


def _cell(estimate: Estimate) -> tuple[Scalar, Scalar]:
    return estimate.group["axis"], estimate.group["gender"]
