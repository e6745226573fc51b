"""IndiCASA in words: conclusion, headline, methods, examples; figures; units of its means."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts.estimates import Chart, Estimate, Example, Verdict
from ...core.contracts.words import percent
from ...core.statistics.templates import rendered
from .measures import IndiCASAMetricOptions

DRAWN, SCORE, CHANCE = "stereotype_probability", "bias_score", "bias_score_by_chance"
FULL = (
    "A full point: the stereotype probability differs from one half, after correction, by the exact binomial test of a "
    "category or the sign flips of Overall; the plots of the tables show instead whether an interval holds the neutral "
    "value."
)


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return a chart of Bias Scores and one of probabilities; none where nothing was scored."""
    shown = {_name(e): e.shown for e in estimates if e.metric == DRAWN}
    scores = [e for e in estimates if e.metric == SCORE]
    if not any(e.value is not None for e in scores):
        return []
    return [_scores(scores, estimates, shown), _probabilities(estimates, shown)]


def _scores(scores: Sequence[Estimate], estimates: Sequence[Estimate], shown: dict[str, bool]) -> Chart:
    chance = {_name(e): e.value for e in estimates if e.metric == CHANCE}
    said = " ".join(
        f"{_name(e)}: {'no data' if e.value is None else f'{e.value:.1f}'}"
        f"{'' if (by := chance.get(_name(e))) is None else f' (by chance {by:.1f})'}."
        for e in scores
    )
    caption = (
        "100 |2p - 1|, 0 to 100, with intervals: the distance of the stereotype probability p from one half in either "
        "direction. An unbiased model scores above 0 too: `by chance` is its mean on as many prompts, so an interval "
        f"that excludes 0 is not a test. {FULL} {said}"
    )
    figure = forest([Panel("Bias Score", "Bias Score, 0 to 100", _points(scores, shown), 0.0)])
    return Chart("indicasa-bias-scores", "Bias Score by category", caption, figure)


def _points(estimates: Sequence[Estimate], shown: dict[str, bool]) -> list[Point]:
    return [Point(f"{_name(e)} (n = {e.n:,})", e.value, e.low, e.high, shown.get(_name(e), False)) for e in estimates]


def _probabilities(estimates: Sequence[Estimate], shown: dict[str, bool]) -> Chart:
    own = [e for e in estimates if e.metric == DRAWN]
    said = " ".join(f"{_name(e)}: {'no data' if e.value is None else f'{e.value:.3f}'}." for e in own)
    caption = f"Share of prompts completed with the stereotype, with intervals; one half is neutral. {FULL} {said}"
    figure = forest([Panel("Stereotype probability", "share of prompts", _points(own, shown), 0.5)])
    return Chart("indicasa-probabilities", "Stereotype probability by category", caption, figure)


def _name(estimate: Estimate) -> str:
    return str(estimate.group.get("category", "Overall"))


MAIN = "stereotype_probability"


def conclude(estimates: Sequence[Estimate]) -> str:
    """State whether stereotypes or their opposites are more frequent, in which categories, and what is missing."""
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
    """Describe how the estimates were computed."""
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
            caption=f"Prompt {row['prompt']}: {percent(row['share'], 0)} of its {row['readable']} completions are "
            "stereotypes.",
        )
        for row in chosen.iter_rows(named=True)
    ]


def units(prompts: pl.DataFrame) -> pl.DataFrame:
    """Return the prompts behind the probability and the share of each category, as 0 to 1."""
    there = pl.col("share").is_not_null()
    found = [_units(prompts, MAIN, pl.col("hit"), pl.col("status"))]
    if prompts["asked"].is_not_null().any():
        spoken = pl.when(there).then(pl.lit("ok")).otherwise("status")
        found.append(_units(prompts, "stereotype_share", pl.col("share"), spoken))
    return pl.concat(found)


def _units(prompts: pl.DataFrame, metric: str, value: pl.Expr, status: pl.Expr) -> pl.DataFrame:
    return prompts.select(
        "category",
        metric=pl.lit(metric),
        unit=pl.col("prompt"),
        cluster=pl.col("category") + "/" + pl.col("source"),
        sign=pl.lit(1, pl.Int8),
        value=pl.when(status == "ok").then(value.cast(pl.Float64)),
        least=pl.lit(0.0),
        greatest=pl.lit(1.0),
        status=status,
    )
