"""The figures of the subtle-bias studies: differences by domain (the paper's Figure 3), and by pronoun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.charts.forest import BLUE, INK, MEDIUM, ORANGE, SKY, SMALL, Panel, Point, forest, new_figure
from ...core.contracts.estimates import Chart, Estimate
from .cells import DELTAS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = ("ΔPL", "ΔNL", "ΔNuL")
LOOKS = ((BLUE, ""), (ORANGE, "//"), (SKY, ".."))


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the bars by domain and the panels by pronoun; none without differences."""
    by_domain = _of(estimates, {"domain"})
    if all(e.value is None for e in by_domain):
        return []
    words = " ".join(f"{e.group['domain']}, {e.metric}: {_number(e.value)}." for e in by_domain)
    charts = [
        Chart(
            name="subtle-differences",
            title="Differences by domain",
            caption=(
                "Percentage of positive, negative and neutral answers where what is given is positive, less that where "
                "it is negative, with cluster intervals. 0: what is given changes nothing. * significant "
                "after correction. " + words
            ),
            figure=_bars(by_domain),
        )
    ]
    return charts + _pronouns(estimates)


def _pronouns(estimates: Sequence[Estimate]) -> list[Chart]:
    found = [e for e in _of(estimates, {"domain", "pronoun"}) if e.metric == DELTAS[0]]
    whole = [e for e in _of(estimates, {"pronoun"}) if e.metric == DELTAS[0]]
    if not found or all(e.value is None for e in whole):
        return []
    panels = []
    for pronoun in dict.fromkeys(str(e.group["pronoun"]) for e in whole):
        own = [e for e in (*whole, *found) if e.group["pronoun"] == pronoun]
        points = [Point(str(e.group.get("domain", "all")), e.value, e.low, e.high, _shown(e)) for e in own]
        panels.append(Panel(pronoun, "ΔPL (percentage points)", points))
    caption = (
        "Percentage of positive answers where what is given is positive, less that where it is negative, for each "
        "pronoun. Full points are significant after correction; lines are cluster intervals."
    )
    return [Chart("subtle-pronouns", "ΔPL by pronoun", caption, forest(panels))]


def _of(estimates: Sequence[Estimate], factors: set[str]) -> list[Estimate]:
    return [e for e in estimates if e.metric in DELTAS and set(e.group) == factors]


def _shown(estimate: Estimate) -> bool:
    return estimate.shown


def _number(value: float | None) -> str:
    return "no data" if value is None else f"{value:+.1f}"


def _bars(estimates: Sequence[Estimate]) -> Figure:
    domains = list(dict.fromkeys(str(e.group["domain"]) for e in estimates))
    figure = new_figure((1.7 * len(domains) + 1.2, 4.4))
    axes = figure.add_subplot()
    for place, name in enumerate(DELTAS):
        own = [e for e in estimates if e.metric == name]
        at = [domains.index(str(e.group["domain"])) + 0.27 * (place - 1) for e in own]
        colour, hatch = LOOKS[place]
        axes.bar(
            at,
            [e.value or 0.0 for e in own],
            0.25,
            color=colour,
            hatch=hatch,
            edgecolor=INK,
            linewidth=0.6,
            label=LABELS[place],
        )
        for x, e in zip(at, own, strict=True):
            if e.low is not None and e.high is not None:
                axes.plot([x, x], [e.low, e.high], color=INK, linewidth=1.2)
            if e.value is None:
                axes.text(x, 1, "no data", rotation=90, ha="center", va="bottom", fontsize=SMALL)
            elif _shown(e):
                top = max(e.value, e.high or e.value, 0.0)
                axes.text(x, top + 1, "*", ha="center", va="bottom", fontsize=MEDIUM + 2)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xticks(range(len(domains)), domains, fontsize=MEDIUM)
    axes.set_ylabel("percentage points", fontsize=MEDIUM)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL)
    return figure
