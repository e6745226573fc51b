"""TriSentBias in words: conclusion, headline; figures (the paper's Figure 2, and forest plots)."""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh

from ...core.charts.forest import GREY, ORANGE, SKY, Bar, Layer, Panel, Point, forest, stacked_bars
from ...core.contracts.estimates import Caveat, Chart, Estimate, Verdict
from ...core.contracts.records import Scalar
from ...core.statistics.facets import population
from ...core.statistics.templates import rendered

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
            f"(crossed), or neither beyond threshold {threshold} (plain). * significant for the desirable side in "
            "positive context, or for the undesirable side in negative context: exact binomial test of pairs, p not "
            "corrected. \N{DAGGER} the same by the permutation test of whole clusters, p corrected. "
            + " ".join(_in_words(bar) for bar in bars)
        ),
        figure=figure,
    )


def _bar(gender: str, sentiment: str, mine: Sequence[Estimate]) -> Bar:
    cell = [e for e in mine if e.group.get("gender") == gender and e.group.get("sentiment") == sentiment]
    values = {e.metric: e.value for e in cell}
    marks = (("*", STAR_BINOMIAL), ("\N{DAGGER}", STAR_CLUSTER))
    mark = "".join(sign for sign, words in marks if any(words in e.facts for e in cell))
    return Bar(f"{gender}\n{sentiment}", tuple(values.get(part) for part in PARTS), mark, gender)


def _in_words(bar: Bar) -> str:
    label = bar.label.replace("\n", ", ")
    if any(part is None for part in bar.parts):
        return f"{label}: no data."
    desirable, within, undesirable = (f"{part:.1f}" for part in bar.parts)
    return f"{label}: {desirable} desirable, {within} within, {undesirable} undesirable."


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
        "the paper calls bias. Full dots are significant by the permutation test of whole clusters after correction."
    )
    return [Chart("trisentbias-contrasts", "Favouritism and discrimination", text, forest(panels))]


def _magnitude_forest(estimates: Sequence[Estimate]) -> list[Chart]:
    points = [Point.of(e) for e in estimates if e.metric == "log_odds_difference"]
    if not points:
        return []
    panel = Panel("Mean log-odds difference, desirable - undesirable", "nats", points)
    text = (
        "Mean of the pseudo-log-likelihood difference by cell with its interval; 0 is no preference, above 0 prefers "
        "the desirable description. Full dots are significant by the permutation test of whole clusters after "
        "correction. A preference that is equal in all contexts is not a contextual bias."
    )
    return [Chart("trisentbias-magnitude", "Magnitude of the preference", text, forest([panel]))]


def conclude(estimates: Sequence[Estimate]) -> str:
    """State whether favouritism was shown, where, how much, and what speaks against it.

    Bias is stated only if the corrected cluster permutation test is significant and the difference is in the paper's
    direction; a significant difference in the other direction is named as such.
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
        population=population(judged),
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


def _hidden(estimates: Sequence[Estimate], shown: Sequence[Estimate]) -> list[Estimate]:
    """Return the groups whose mean log-odds difference shows favouritism where the shares do not."""
    known, tolerated = [_cell(e) for e in shown], _tolerated(estimates)
    stronger = [e for e in estimates if e.metric == "favouritism_log_odds" and e.verdict is Verdict.ABOVE]
    return [e for e in stronger if _cell(e) not in known and (e.value or 0.0) > tolerated]


def _tolerated(estimates: Sequence[Estimate]) -> float:
    """Return the largest log-odds difference within the main threshold; every model differs slightly from 0."""
    thresholds = [float(str(e.group["threshold"])) for e in estimates if MAIN in e.facts]
    return 2 * atanh(thresholds[0]) if thresholds and thresholds[0] < 1 else 0.0


def _most(estimates: Sequence[Estimate], sign: int) -> Estimate | None:
    return max(estimates, key=lambda e: sign * (e.value or 0.0), default=None)


def _cell(estimate: Estimate) -> tuple[Scalar, Scalar]:
    return estimate.group["axis"], estimate.group["gender"]
