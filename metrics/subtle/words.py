"""The subtle-bias studies in words: conclusion, headline, methods, examples; and the units of their differences."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.statistics.observations import Measure, percent, unit_rows
from ...core.statistics.templates import rendered
from ...probes.subtle.terms import POLARITIES
from .cells import DELTAS
from .options import SubtleMetricOptions


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the differences of the whole study and by domain, and tau of the whole study."""
    taus = ("tau_b", "tau_c", "tau_c_clustered")
    chosen = [e for e in estimates if e.metric in DELTAS and "pronoun" not in e.group]
    return [*chosen, *(e for e in estimates if e.metric in taus and set(e.group) == {"coding"})]


def conclude(estimates: Sequence[Estimate]) -> str:
    """Say whether positive answers are more frequent where what is given is positive."""
    delta = next((e for e in estimates if e.metric == DELTAS[0] and not e.group), None)
    by_domain = [e for e in estimates if e.metric == DELTAS[0] and set(e.group) == {"domain"}]
    return rendered(
        str(__package__),
        "conclusion.md.j2",
        delta=delta if delta is not None and delta.value is not None else None,
        above=[e.group["domain"] for e in by_domain if e.verdict is Verdict.ABOVE],
        below=[e.group["domain"] for e in by_domain if e.verdict is Verdict.BELOW],
    )


def methods(options: SubtleMetricOptions) -> str:
    """Describe how the estimates were made."""
    return rendered(str(__package__), "methods.md.j2", options=options, intervals=_intervals(options))


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
