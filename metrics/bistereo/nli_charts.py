"""The figures of BIStereo-NLI: %C and %E by category and skin tone (the paper's Figures 3 and 23 to 25), contrasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.charts.forest import INK, MEDIUM, ORANGE, SKY, SMALL, Panel, Point, forest, new_figure
from ...core.contracts.estimates import Chart, Estimate
from ...probes.bistereo.terms import SKINS
from .nli_pairs import CONTEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {"fair": (SKY, ""), "dark": (ORANGE, "//")}
SHOWN = ("contradiction", "entailment")


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the bars of each gender, and the forest of halo and horn effects."""
    bars = [e for e in estimates if e.metric in SHOWN]
    genders = dict.fromkeys(str(e.group["gender"]) for e in bars)
    charts = [_bars(gender, [e for e in bars if e.group["gender"] == gender]) for gender in genders]
    return charts + _forest(estimates)


def _bars(gender: str, estimates: Sequence[Estimate]) -> Chart:
    figure = new_figure((9.6, 4.4))
    for axes, metric in zip(figure.subplots(1, 2), SHOWN, strict=True):
        _panel(axes, metric, [e for e in estimates if e.metric == metric])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=SMALL)
    said = " ".join(f"{e.group['category']}, {e.group['skin']}, {e.metric}: {_number(e)}." for e in estimates)
    caption = (
        "Percentage of readable answers that say contradiction and entailment, by category of attribute and skin tone, "
        "with cluster intervals. A model without a bias says neither: both are 0 for each skin tone. " + said
    )
    return Chart(f"bistereo-nli-{gender}", f"Contradiction and entailment, {gender}", caption, figure)


def _panel(axes: Axes, metric: str, estimates: Sequence[Estimate]) -> None:
    categories = list(dict.fromkeys(str(e.group["category"]) for e in estimates))
    for side, skin in enumerate(SKINS):
        colour, hatch = LOOKS[skin]
        own = [e for e in estimates if e.group["skin"] == skin]
        at = [categories.index(str(e.group["category"])) + 0.38 * (side - 0.5) for e in own]
        heights = [e.value or 0.0 for e in own]
        axes.bar(at, heights, 0.36, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.6, label=f"{skin}-skinned")
        for x, e in zip(at, own, strict=True):
            if e.low is not None and e.high is not None:
                axes.plot([x, x], [e.low, e.high], color=INK, linewidth=1.2)
            if e.value is None:
                axes.text(x, 1, "no data", rotation=90, ha="center", va="bottom", fontsize=SMALL)
    axes.set_xticks(range(len(categories)), [name.replace(" ", "\n") for name in categories], fontsize=SMALL)
    axes.set_ylim(0, 105)
    axes.set_ylabel(f"{metric} (%)", fontsize=MEDIUM)
    axes.spines[["top", "right"]].set_visible(False)


def _forest(estimates: Sequence[Estimate]) -> list[Chart]:
    panels = []
    for name in ("halo", "horn"):
        own = [e for e in estimates if e.metric == name and set(e.group) in (set(), set(CONTEXT[:2]))]
        points = [Point(_label(e), e.value, e.low, e.high, e.shown) for e in own]
        if points:
            panels.append(Panel(f"{name} effect", "percentage points", points))
    if not panels:
        return []
    caption = (
        "Halo effect: entailment of positive attributes, fair less dark. Horn effect: entailment of negative ones, "
        "dark less fair. 0: the skin tone makes no difference. Full points are significant after correction; lines are "
        "cluster intervals."
    )
    return [Chart("bistereo-nli-effects", "Halo and horn effects", caption, forest(panels))]


def _label(estimate: Estimate) -> str:
    return ", ".join(str(estimate.group[name]) for name in CONTEXT[:2]) if estimate.group else "all"


def _number(estimate: Estimate) -> str:
    return "no data" if estimate.value is None else f"{estimate.value:.1f} %"
