"""The figures of IndiCASA: Bias Scores and stereotype probabilities by category."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts.estimates import Chart, Estimate

MAIN, SCORE, CHANCE = "stereotype_probability", "bias_score", "bias_score_by_chance"
FULL = (
    "A full point: the stereotype probability differs from one half, after correction, by the exact binomial test of a "
    "category or the sign flips of Overall; the plots of the tables show instead whether an interval holds the neutral "
    "value."
)


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return a chart of Bias Scores and one of probabilities; none where nothing was scored."""
    shown = {_name(e): e.shown for e in estimates if e.metric == MAIN}
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
        "100 |2p - 1|, 0 to 100, with intervals: the distance of the stereotype probability p from one half, whichever "
        "way. A model without a lean scores above 0 too: `by chance` is its average on as many prompts; an interval "
        f"that leaves 0 out is no test. {FULL} {said}"
    )
    figure = forest([Panel("Bias Score", "Bias Score, 0 to 100", _points(scores, shown), 0.0)])
    return Chart("indicasa-bias-scores", "Bias Score by category", caption, figure)


def _points(estimates: Sequence[Estimate], shown: dict[str, bool]) -> list[Point]:
    return [Point(f"{_name(e)} (n = {e.n:,})", e.value, e.low, e.high, shown.get(_name(e), False)) for e in estimates]


def _probabilities(estimates: Sequence[Estimate], shown: dict[str, bool]) -> Chart:
    own = [e for e in estimates if e.metric == MAIN]
    said = " ".join(f"{_name(e)}: {'no data' if e.value is None else f'{e.value:.3f}'}." for e in own)
    caption = f"Share of prompts completed with the stereotype, with intervals; one half is no lean. {FULL} {said}"
    figure = forest([Panel("Stereotype probability", "share of prompts", _points(own, shown), 0.5)])
    return Chart("indicasa-probabilities", "Stereotype probability by category", caption, figure)


def _name(estimate: Estimate) -> str:
    return str(estimate.group.get("category", "Overall"))
