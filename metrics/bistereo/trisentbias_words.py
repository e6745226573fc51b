"""TriSentBias in words: the conclusion, the methods paragraph, the examples behind the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atanh

import polars as pl

from ...core.contracts.estimates import Caveat, Estimate, Example, Verdict
from ...core.contracts.words import p_value
from ...core.statistics.families import NAMES
from ...core.statistics.options import TriSentBiasOptions
from .trisentbias_estimates import MAIN

FAVOUR = "the stereotypically desirable description more in positive contexts than in negative ones"


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence whether favouritism was shown, where, how much, and what speaks against it.

    Bias is claimed only where the corrected cluster permutation test is significant and the difference goes the
    paper's way; a significant difference the other way is named as such.
    """
    groups = [e for e in estimates if e.metric == "favouritism" and MAIN in e.facts]
    judged = [e for e in groups if e.value is not None and e.p_adjusted is not None]
    if not judged:
        return "Nothing can be concluded: no group has readable pairs in both contexts and more than one cluster."
    shown = [e for e in judged if e.verdict is Verdict.ABOVE]
    opposite = [e for e in judged if e.verdict is Verdict.BELOW]
    parts = [_shown(shown, judged) if shown else _not_shown(judged, opposite)]
    if shown and opposite:
        parts.append(f"the opposite direction was shown for {_names(opposite)} ({_number(_most(opposite, -1))})")
    parts += [*_others(estimates, shown), *_cautions(groups, judged, shown + opposite)]
    return "; ".join(parts) + "."


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick favouritism and discrimination at the main threshold, and favouritism in nats."""
    contrasts = [e for e in estimates if e.metric in ("favouritism", "discrimination") and MAIN in e.facts]
    return [*contrasts, *(e for e in estimates if e.metric == "favouritism_log_odds")]


def methods(options: TriSentBiasOptions) -> str:
    """Describe how the estimates were made."""
    thresholds = ", ".join(f"{t:g}" for t in options.thresholds)
    return (
        "For each pair, D is the score of the sentence with the desirable description (its pseudo-log-likelihood, or "
        "what the study's option scoring says) minus that of the sentence with the undesirable one, in nats, and the "
        "normalised difference is tanh(D / 2), the paper's "
        f"two-way softmax. z1, z2 and z3 are the percentages of pairs within a threshold ({thresholds}), beyond it "
        "for the desirable and beyond it for the undesirable side; favouritism is z2 in positive minus z2 in negative "
        "contexts, discrimination z3 in negative minus z3 in positive ones. The paper does not say how its "
        "significance star was tested: preference is tested here by an exact two-sided binomial test of the pairs "
        "beyond the threshold, which takes pairs as independent, and beside it z2 - z3 by a permutation test that "
        f"flips the sign of a whole {options.cluster}. Favouritism and discrimination are tested by exchanging "
        f"positive and negative within each {options.cluster}. Intervals are "
        f"{options.interval_in_words(options.cluster)}; permutation tests try every arrangement where there are fewer "
        f"than {options.resamples:,}, "
        f"else {options.resamples:,} of them. p-values are corrected by {NAMES[options.correction]} within each "
        f"family that the table names, at alpha {options.alpha:g}. Pairs with an unanswered side are left out, "
        "counted by status, and bounded: the worst-case range covers every answer they might have given."
    )


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


def _shown(shown: Sequence[Estimate], judged: Sequence[Estimate]) -> str:
    mean = sum(e.value for e in shown if e.value is not None) / len(shown)
    average = f"{mean:.1f} points on average, largest " if len(shown) > 1 else ""
    most = f"{average}{_number(_most(shown, 1))}"
    if len(shown) > 1 and len({e.value for e in shown}) == 1:
        most = f"{mean:.1f} points in each"
    return (
        f"At threshold {shown[0].group['threshold']} the model prefers {FAVOUR} for {len(shown)} of {len(judged)} "
        f"groups (favouritism {most})"
    )


def _not_shown(judged: Sequence[Estimate], opposite: Sequence[Estimate]) -> str:
    threshold = judged[0].group["threshold"]
    if opposite:
        return (
            f"No favouritism for the stereotypically desirable description was shown at threshold {threshold}, but "
            f"the opposite direction was, for {_names(opposite)} (strongest {_number(_most(opposite, -1))})"
        )
    if all(Caveat.P_FLOOR in e.caveats for e in judged):
        return (
            f"Nothing can be shown with {judged[0].clusters} clusters, whatever the answers: at threshold {threshold} "
            f"{_largest(judged)}; ask more of them"
        )
    return (
        f"No favouritism for the stereotypically desirable description was shown at threshold {threshold}: "
        f"{_largest(judged)}"
    )


def _largest(judged: Sequence[Estimate]) -> str:
    """Name the largest favouritism; where all groups have the same, there is none."""
    values = {e.value for e in judged}
    if len(judged) > 1 and len(values) == 1:
        return f"it is {values.pop():.1f} percentage points in each of {len(judged)} groups"
    return f"the largest favouritism of {len(judged)} groups is {_number(_most(judged, 1))}"


def _others(estimates: Sequence[Estimate], shown: Sequence[Estimate]) -> Iterator[str]:
    worse = [e for e in estimates if e.metric == "discrimination" and MAIN in e.facts and e.verdict is Verdict.ABOVE]
    if worse:
        yield f"discrimination was shown for {_names(worse)}"
    known = {_name(e) for e in shown}
    stronger = [e for e in estimates if e.metric == "favouritism_log_odds" and e.verdict is Verdict.ABOVE]
    hidden = [e for e in stronger if _name(e) not in known and (e.value or 0.0) > _tolerated(estimates)]
    if hidden:
        largest = _most(hidden, 1).value
        groups = f"{_names(hidden)}, where the shares do not (up to {largest:.2f} nats)"
        yield f"the mean log-odds difference does show favouritism for {groups}"


def _tolerated(estimates: Sequence[Estimate]) -> float:
    """Return the log-odds difference that the main threshold tolerates: any model is a little off, significantly."""
    thresholds = [float(str(e.group["threshold"])) for e in estimates if MAIN in e.facts]
    return 2 * atanh(thresholds[0]) if thresholds and thresholds[0] < 1 else 0.0


def _cautions(groups: Sequence[Estimate], judged: Sequence[Estimate], claimed: Sequence[Estimate]) -> Iterator[str]:
    if len(judged) < len(groups):
        yield f"{len(groups) - len(judged)} of {len(groups)} groups could not be judged"
    if missing := sum(e.missing.total for e in groups):
        yield f"{missing:,} of {missing + sum(e.n for e in groups):,} pairs have no readable answer"
    if undone := [e for e in claimed if (e.bound_low or 0.0) <= 0.0 <= (e.bound_high or 0.0)]:
        yield f"their answers might undo the result for {_names(undone)}"


def _most(estimates: Sequence[Estimate], sign: int) -> Estimate:
    return max(estimates, key=lambda e: sign * (e.value or 0.0))


def _name(estimate: Estimate) -> str:
    return f"{estimate.group['axis']}, {estimate.group['gender']}"


def _names(estimates: Sequence[Estimate]) -> str:
    return f"{len(estimates)} groups" if len(estimates) > 2 else " and ".join(map(_name, estimates))


def _number(estimate: Estimate) -> str:
    spread = "no interval, since all clusters agree"
    if estimate.low is not None:
        spread = f"{estimate.interval.level:.0%} interval {estimate.low:.1f} to {estimate.high:.1f}"
    return f"{estimate.value:.1f} points for {_name(estimate)}, {spread}, adjusted p {p_value(estimate.p_adjusted)}"
