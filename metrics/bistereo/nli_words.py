"""BIStereo-NLI in words: conclusion, headline, methods, examples; figures (the paper's 3 and 23 to 26); units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from ...core.charts.forest import INK, MEDIUM, ORANGE, SKY, SMALL, Panel, Point, forest, new_figure
from ...core.contracts.estimates import Chart, Estimate, Example, Verdict
from ...core.statistics.facets import population
from ...core.statistics.observations import UnitMeasure, unit_rows
from ...core.statistics.templates import rendered
from ...probes.bistereo.terms import LABELS, SKINS
from .nli_pairs import CELL, CONTEXT, GROUPINGS, BIStereoNLIMetricOptions, Contrast, contrasts, side_by_side

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
        "with cluster intervals. An unbiased model gives neither: both are 0 for each skin tone. " + said
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
        "Halo effect: entailment of positive attributes, fair minus dark. Horn effect: entailment of negative ones, "
        "dark minus fair. 0: the skin tone has no effect. Full points are significant after correction; lines are "
        "cluster intervals."
    )
    return [Chart("bistereo-nli-effects", "Halo and horn effects", caption, forest(panels))]


def _label(estimate: Estimate) -> str:
    return ", ".join(str(estimate.group[name]) for name in CONTEXT[:2]) if estimate.group else "all"


def _number(estimate: Estimate) -> str:
    return "no data" if estimate.value is None else f"{estimate.value:.1f} %"


EFFECTS = ("halo", "horn")


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the halo and horn effects of the whole study, and by gender and kind of attribute."""
    return [e for e in estimates if e.metric in EFFECTS and set(e.group) in (set(), set(CONTEXT[:2]))]


def conclude(estimates: Sequence[Estimate]) -> str:
    """State whether a halo and a horn effect were shown, where, and how neutral the model is."""
    whole = {e.metric: e for e in estimates if e.metric in EFFECTS and not e.group and e.value is not None}
    effects = [(whole[name], _shown_groups(estimates, name)) for name in EFFECTS if name in whole]
    neutral = [e for e in estimates if e.metric == "neutral" and e.value is not None]
    total = sum(e.n for e in neutral)
    lost = next((e for e in estimates if e.metric == "missing" and not e.group), None)
    return rendered(
        str(__package__),
        "nli.conclusion.md.j2",
        effects=effects,
        population=population([e for e, _ in effects]),
        neutral=sum((e.value or 0.0) * e.n for e in neutral) / total if total else None,
        missing=lost.missing.total if lost is not None else 0,
        asked=lost.n if lost is not None else 0,
    )


def _shown_groups(estimates: Sequence[Estimate], name: str) -> list[Estimate]:
    own = (e for e in estimates if e.metric == name and set(e.group) == set(CONTEXT[:2]))
    return [e for e in own if e.verdict is Verdict.ABOVE]


def methods(options: BIStereoNLIMetricOptions) -> str:
    """Describe how the estimates were computed."""
    return rendered(str(__package__), "nli.methods.md.j2", options=options)


def units(frame: pl.DataFrame, options: BIStereoNLIMetricOptions) -> pl.DataFrame:
    """Return the pairs behind the contrasts, and the answers behind the shares of labels."""
    rows: list[pl.DataFrame] = []
    for contrast, pairs in contrasts(side_by_side(frame, options.ways)):
        measure = UnitMeasure(contrast.name, pl.col("value"), -100.0, 100.0)
        for factors in GROUPINGS:
            rows += unit_rows(pairs, [measure], factors, *options.ways)
    shares = [UnitMeasure(name, pl.col(name), 0.0, 100.0) for name in LABELS]
    return pl.concat([*rows, *unit_rows(frame, shares, CELL, *options.ways)], how="diagonal").drop("threshold")


def examples_of(frame: pl.DataFrame, options: BIStereoNLIMetricOptions) -> list[Example]:
    """Pick pairs whose label is entailment for one skin tone only, in the direction of the halo and horn effects."""
    if "key" not in frame.columns:
        return []
    pairs = side_by_side(frame, options.ways)
    return [e for c, part in contrasts(pairs) if c.name in EFFECTS for e in _examples(c, part, options)]


def _examples(contrast: Contrast, pairs: pl.DataFrame, options: BIStereoNLIMetricOptions) -> Iterator[Example]:
    found = pairs.filter(pl.col("value") > 0).unique(
        ["gender", "kind", options.ways[0]], keep="first", maintain_order=True
    )
    for row in found.group_by("gender", "kind", maintain_order=True).head(options.examples).iter_rows(named=True):
        keys = (row[f"key_{contrast.first}"], row[f"key_{contrast.second}"])
        yield Example(
            title=f"{row['kind']} of {row['gender']}: entailed for {contrast.first} skin only",
            group={"gender": row["gender"], "kind": row["kind"]},
            keys=tuple(key for key in keys if key is not None),
            caption=f"Pair {row['pair']}, {row['category']}, {row['direction']}.",
        )
