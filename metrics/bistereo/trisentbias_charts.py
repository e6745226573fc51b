"""The figures of TriSentBias: the paper's Figure 2, and forest plots."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.charts.forest import GREY, ORANGE, SKY, Bar, Layer, Panel, Point, forest, stacked_bars
from ...core.contracts.estimates import Chart, Estimate

MAIN = "main_threshold"
"""Fact of the estimates at the threshold of headlines and figures."""
STAR_BINOMIAL = "star_binomial"
"""The paper's star as an exact binomial test of pairs, p not corrected, as in the paper's caption."""
STAR_CLUSTER = "star_cluster"
"""The same star for a test of whole clusters, p corrected."""

LAYERS = (
    Layer("prefers desirable", SKY, ".."),
    Layer("within threshold", GREY),
    Layer("prefers undesirable", ORANGE, "xx"),
)
PARTS = ("z2", "z1", "z3")


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return one chart of stacked bars per axis, then the forest plots; only for estimates that are there."""
    main = [e for e in estimates if MAIN in e.facts]
    axes = list(dict.fromkeys(str(e.group["axis"]) for e in main if e.metric == "z1"))
    return [*(_bars(axis, main) for axis in axes), *_contrast_forest(main), *_magnitude_forest(estimates)]


def _bars(axis: str, main: Sequence[Estimate]) -> Chart:
    mine = [e for e in main if e.group.get("axis") == axis]
    threshold = mine[0].group["threshold"]
    cells = dict.fromkeys((str(e.group["gender"]), str(e.group["sentiment"])) for e in mine if e.metric == "z1")
    bars = [_bar(gender, sentiment, mine) for gender, sentiment in cells]
    figure = stacked_bars(f"TriSentBias, {axis}, threshold {threshold}", bars, LAYERS)
    return Chart(
        name=f"trisentbias-{axis.replace(' ', '-')}",
        title=f"Preference by context: {axis}",
        caption=(
            "Percentage of pairs where the model prefers the desirable description (dotted), the undesirable one "
            f"(crossed), or neither beyond threshold {threshold} (plain). Significant for the desirable in positive or "
            "the undesirable in negative context: * by pairs, uncorrected; \N{DAGGER} by clusters, corrected."
        ),
        figure=figure,
    )


def _bar(gender: str, sentiment: str, mine: Sequence[Estimate]) -> Bar:
    cell = [e for e in mine if e.group.get("gender") == gender and e.group.get("sentiment") == sentiment]
    values = {e.metric: e.value for e in cell}
    marks = (("*", STAR_BINOMIAL), ("\N{DAGGER}", STAR_CLUSTER))
    mark = "".join(sign for sign, words in marks if any(words in e.facts for e in cell))
    return Bar(f"{gender}\n{sentiment}", tuple(values.get(part) for part in PARTS), mark, gender)


def _contrast_forest(main: Sequence[Estimate]) -> list[Chart]:
    panels = [
        Panel(title, "percentage points", [Point.of(e, "threshold") for e in main if e.metric == name])
        for name, title in (
            ("favouritism", "Favouritism (z2, positive - negative)"),
            ("discrimination", "Discrimination (z3, negative - positive)"),
        )
    ]
    if not all(panel.points for panel in panels):
        return []
    text = (
        "Difference between positive and negative contexts with its interval; 0 is unbiased, above 0 is the direction "
        "the paper calls bias. Full dots are significant after correction."
    )
    return [Chart("trisentbias-contrasts", "Favouritism and discrimination", text, forest(panels))]


def _magnitude_forest(estimates: Sequence[Estimate]) -> list[Chart]:
    points = [Point.of(e) for e in estimates if e.metric == "log_odds_difference"]
    if not points:
        return []
    panel = Panel("Mean log-odds difference, desirable - undesirable", "nats", points)
    text = (
        "Mean log-odds difference in each context with its interval; 0 is no preference, above 0 prefers the desirable "
        "description. Full dots are significant after correction. A preference that is equal in all contexts is not a "
        "contextual bias."
    )
    return [Chart("trisentbias-magnitude", "Magnitude of the preference", text, forest([panel]))]
