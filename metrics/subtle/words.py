"""The subtle-bias studies in words: conclusion, headline, methods, examples; and the units of their differences."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.contracts.words import p_value
from ...core.statistics.families import NAMES
from ...core.statistics.pairs import Measure, percent, unit_rows
from ...probes.subtle.terms import POLARITIES
from .cells import DELTAS
from .options import SubtleMetricOptions


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the differences of the whole study and by domain, and tau of the whole study."""
    taus = ("tau_b", "tau_c", "tau_c_clustered")
    chosen = [e for e in estimates if e.metric in DELTAS and "pronoun" not in e.group]
    return [*chosen, *(e for e in estimates if e.metric in taus and set(e.group) == {"coding"})]


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence whether positive answers are more frequent where what is given is positive."""
    delta = next((e for e in estimates if e.metric == "delta_PL" and not e.group), None)
    if delta is None or delta.value is None:
        return "Nothing can be concluded: what was given was not of both polarities, or no answer could be read."
    spread = "" if delta.low is None else f", {delta.interval.level:.0%} interval {delta.low:.1f} to {delta.high:.1f}"
    often = "more" if delta.value >= 0 else "less"
    found = f"positive options were chosen {abs(delta.value):.1f} percentage points {often} often"
    p = "" if delta.p_adjusted is None else f", adjusted p {p_value(delta.p_adjusted)}"
    parts = [f"{_verdict(delta)}: in these answers {found} where what is given is positive{spread}{p}"]
    by_domain = [e for e in estimates if e.metric == "delta_PL" and set(e.group) == {"domain"} and e.value is not None]
    if shown := [str(e.group["domain"]) for e in by_domain if e.verdict is Verdict.ABOVE]:
        parts.append(f"by domain this was shown for {', '.join(shown)}")
    if opposite := [str(e.group["domain"]) for e in by_domain if e.verdict is Verdict.BELOW]:
        parts.append(f"the opposite was shown for {', '.join(opposite)}")
    if missing := delta.missing.total:
        parts.append(f"{missing:,} of {delta.n + missing:,} answers are missing")
        if delta.verdict is Verdict.ABOVE and delta.bound_low is not None and delta.bound_low <= 0:
            parts.append("they might undo the result")
    return "; ".join(parts) + "."


def _verdict(delta: Estimate) -> str:
    if delta.p_adjusted is None:
        return "Nothing is tested, for it is not known which answers are about the same given term"
    if delta.verdict is Verdict.ABOVE:
        return "What is given carries over to what is chosen"
    if delta.verdict is Verdict.BELOW:
        return "What is chosen runs against what is given"
    return "It was not shown beyond chance that what is given carries over to what is chosen"


def methods(options: SubtleMetricOptions) -> str:
    """Describe how the estimates were made."""
    return (
        "PL, NL and NuL are the percentages of readable answers that choose the positive, the negative and the neutral "
        "option; PPL, PNL and PNuL the same where what is given is positive, NPL, NNL and NNuL where it is negative; "
        "delta_PL = PPL - NPL and so on. Kendall's tau is between the polarity of what is given and the answer, coded "
        "as its polarity (the paper's text) and as match with a stereotype (what its Table 1 follows), in the variants "
        "b and c with the asymptotic p, which takes answers as independent; tau_c_clustered has the p of permuting the "
        "polarity labels of whole given terms. That test holds the templates fixed, while an interval over templates "
        "and terms covers other templates too, so that it may contain 0 where the test rejects. Intervals are "
        f"{_intervals(options)}; counts without known items have exact intervals "
        f"(Clopper-Pearson) for shares and none else. p-values are corrected by {NAMES[options.correction]} within the "
        f"families that the table names, at alpha {options.alpha:g}. Answers that name no option are left out, counted "
        "by kind, and bounded: the worst-case range covers every option they might have named. The place of the chosen "
        "option is reported apart."
    )


def _intervals(options: SubtleMetricOptions) -> str:
    if len(options.cluster) < 2:
        return options.interval_in_words(*options.cluster)
    ways = " crossed with ".join(options.cluster)
    jackknife = f"jackknives over {ways} (Student's t)"
    if options.intervals == "jackknife":
        return f"{options.level:.0%} {jackknife}"
    drawn = f"{options.resamples:,} resamples, seed {options.seed}"
    return f"{options.level:.0%} cluster bootstraps over {ways} ({drawn}), as wide as {jackknife}"


def examples_of(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Example]:
    """Pick per domain and given polarity answers of that polarity, one per template."""
    if not {"key", "item", "template"} <= set(observations.columns):
        return []
    ok = (pl.col("status") == "ok") & pl.col("key").is_not_null()
    found = observations.filter(ok & (pl.col("chosen") == pl.col("given")))
    first = found.unique(["domain", "given", "template"], keep="first", maintain_order=True)
    chosen = first.group_by("domain", "given", maintain_order=True).head(options.examples)
    return [
        Example(
            title=f"{row['domain']}: given {row['term']!r}, which is {row['given']}, the answer is {row['chosen']}",
            group={"domain": row["domain"], "given": row["given"]},
            keys=(row["key"],),
            caption=f"Item {row['item']}.",
        )
        for row in chosen.iter_rows(named=True)
    ]


def units(observations: pl.DataFrame, options: SubtleMetricOptions) -> pl.DataFrame | None:
    """Return the answers behind the differences, whole and by domain; None where items are not known."""
    if "trial" not in observations.columns or observations["trial"].null_count():
        return None
    frame = observations.with_columns(pl.col("trial").alias("pair"))
    side = pl.when(pl.col("given") == "positive").then(1).otherwise(-1)
    measures = [
        Measure(name, percent(pl.col("chosen") == choice), 0.0, 100.0, side)
        for name, choice in zip(DELTAS, POLARITIES, strict=True)
    ]
    rows = [row for factors in ((), ("domain",)) for row in unit_rows(frame, measures, factors, options.cluster[-1])]
    return pl.concat(rows, how="diagonal").drop("threshold")


def designs(observations: pl.DataFrame, options: SubtleMetricOptions) -> pl.DataFrame | None:
    """Return the units with what else clusters them, if two ways cross; None where items are not known."""
    found = units(observations, options)
    if found is None or len(options.cluster) < 2:
        return found
    row, cluster = options.cluster
    other = observations.select(pl.col("trial").cast(pl.String).alias("unit"), pl.col(row).cast(pl.String).alias("row"))
    crossed = found.join(other, on="unit", how="left", maintain_order="left")
    return crossed.with_columns(ways=pl.lit(f"{row} x {cluster}"))
