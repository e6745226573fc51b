"""The figures of BIStereo-NLI: the paper's 3 and 23 to 26, and a forest plot of the effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.charts.forest import ORANGE, SKY, SMALL, Column, Layer, Panel, Point, forest, grouped_bars, new_figure
from ...core.contracts.estimates import Chart, Estimate
from ...probes.bistereo.terms import SKINS

CONTEXT = ("gender", "kind", "direction")
LOOKS = {"fair": Layer("fair-skinned", SKY), "dark": Layer("dark-skinned", ORANGE, "//")}
SHOWN = ("contradiction", "entailment")
PROBABLE = tuple(f"{name}_probability" for name in SHOWN)
SAYS = {SHOWN: "Percentage of readable answers that say", PROBABLE: "Mean probability (%) of"}
"""What the bars of labels, and those of their probabilities, show."""
EFFECTS = (
    "Entailment with fair skin minus that with dark skin, of positive attributes minus of negative ones, halved. 0: "
    "the skin tone has the same effect on both. Full points are significant after correction; lines are "
    "cluster intervals."
)


def draw(estimates: Sequence[Estimate], effects: Sequence[Estimate]) -> list[Chart]:
    """Return the bars of each gender, and the forest plot of the effects."""
    metrics = bars_of(effects)
    bars = [e for e in estimates if e.metric in metrics]
    genders = dict.fromkeys(str(e.group["gender"]) for e in bars)
    charts = [_bars(gender, metrics, [e for e in bars if e.group["gender"] == gender]) for gender in genders]
    panels = [
        Panel("halo and horn effect", "percentage points", [Point.of(e) for e in effects if e.metric == name])
        for name in dict.fromkeys(e.metric for e in effects)
    ]
    return [
        *charts,
        *([Chart("bistereo-nli-effects", "Halo and horn effects", EFFECTS, forest(panels))] if panels else []),
    ]


def bars_of(effects: Iterable[Estimate]) -> tuple[str, ...]:
    """Return the metrics of the bars beside the effects: probabilities where these are of probabilities."""
    names = {e.metric for e in effects}
    return PROBABLE if names and all(name.endswith("_probability") for name in names) else SHOWN


def _bars(gender: str, metrics: Sequence[str], estimates: Sequence[Estimate]) -> Chart:
    figure = new_figure((9.6, 4.4))
    levels = tuple(dict.fromkeys(str(e.group["skin"]) for e in estimates))
    skins = SKINS if {*levels} <= {*SKINS} else levels
    layers = LOOKS.values()
    own_looks = {skin: Layer(skin, layer.colour, layer.hatch) for skin, layer in zip(skins, layers, strict=False)}
    looks = LOOKS if skins is SKINS else own_looks
    for axes, metric, name in zip(figure.subplots(1, 2), metrics, SHOWN, strict=True):
        own = [(skin, e) for skin in skins for e in estimates if e.metric == metric and e.group["skin"] == skin]
        bars = [(skin, Column(str(e.group["category"]), e.value, e.low, e.high)) for skin, e in own]
        grouped_bars(axes, f"{name} (%)", [(looks[skin], [b for tone, b in bars if tone == skin]) for skin in skins])
        axes.set_ylim(0, 105)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=SMALL)
    caption = (
        f"{SAYS[tuple(metrics)]} contradiction and entailment, by category of attribute and skin tone, "
        "with cluster intervals. An unbiased model gives neither: both are 0 for each skin tone."
    )
    return Chart(f"bistereo-nli-{gender}", f"Contradiction and entailment, {gender}", caption, figure)
