"""The figures of the attractiveness study: shares by category, and the strength of the filter by group."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.charts.forest import INK, MEDIUM, SMALL, Column, columns, new_figure
from ...core.contracts.estimates import Chart, Estimate
from .filter import FILTER, KRUSKAL
from .flows import WORDS, draw_overlap
from .scores import LABELS
from .shares import JUDGED, PAPER, SHARE
from .tables import draw_tables

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
MARKS = "os^Dv*"


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the paper's Figures 3, 4, 5 and 6 and its Tables 5, 6 and 7, as far as there are estimates for them."""
    strength = (chart for by in LABELS for chart in _strength(by, estimates))
    return [*_shares(estimates), *draw_overlap(estimates), *strength, *draw_tables(estimates)]


def _shares(estimates: Sequence[Estimate]) -> list[Chart]:
    own = [e for e in estimates if e.metric == SHARE and e.group["by"] == FILTER and e.group[JUDGED] == PAPER]
    bars = [Column(_label(e), e.value, e.low, e.high) for e in own]
    if not any(bar.value is not None for bar in bars):
        return []
    figure = columns("Scenarios whose answers the filter changes", "% of scenarios", bars, 0.0)
    caption = (
        "Percentage of scenarios with p < 0.05 in the paper's Kruskal-Wallis test, not corrected; chance alone "
        "gives 5 %. Lines are exact intervals. " + " ".join(f"{_label(e)}: {e.note}." for e in own)
    )
    return [Chart("attractiveness-shares", "Attractiveness bias by category", caption, figure)]


def _label(estimate: Estimate) -> str:
    group = estimate.group
    return ", ".join(str(group[name]) for name in ("category", "kind") if name in group) or "all"


def _strength(by: str, estimates: Sequence[Estimate]) -> list[Chart]:
    own = [e for e in estimates if e.metric == KRUSKAL and e.group.get("by") == FILTER and by in e.group]
    levels = list(dict.fromkeys(str(e.group[by]) for e in own))
    values = {(str(e.group[by]), str(e.group["scenario"])): e.value for e in own if e.value is not None}
    scenarios = list(dict.fromkeys(str(e.group["scenario"]) for e in own))
    if not values:
        return []
    scenarios.sort(key=lambda scenario: values.get((levels[0], scenario), -1.0))
    figure = new_figure((max(6.0, 0.13 * len(scenarios) + 2.5), 5.4))
    axes = figure.add_subplot()
    for place, level in enumerate(levels):
        at = [x for x, scenario in enumerate(scenarios) if (level, scenario) in values]
        heights = [values[level, scenarios[x]] for x in at]
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axes.plot(at, heights, mark, color=colour, markersize=4.5, label=level)
    axes.set_xticks(range(len(scenarios)), scenarios, rotation=90, fontsize=5.5)
    axes.set_ylabel("Kruskal-Wallis H, filtered against original", fontsize=MEDIUM)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", color=INK)
    axes.legend(frameon=False, fontsize=SMALL, title=WORDS[by])
    caption = (
        f"Strength of the filter's effect by {WORDS[by]}: H of filtered against original images of the group, a point "
        f"per scenario and group, in rising order for {levels[0]}. Groups of different size have H of different size."
    )
    name = f"attractiveness-by-{by.replace('_', '-')}"
    return [Chart(name, f"Attractiveness bias by {WORDS[by]}", caption, figure)]
