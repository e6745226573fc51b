"""The subtle-bias studies in words: conclusion, headline, methods, examples; figures; units of the differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from ...core.charts.forest import BLUE, INK, MEDIUM, ORANGE, SKY, SMALL, Panel, Point, forest, new_figure
from ...core.contracts.estimates import Chart, Estimate, Example, Verdict
from ...core.contracts.words import signed
from ...core.statistics.observations import UnitMeasure, percent, unit_rows
from ...core.statistics.templates import rendered
from ...probes.subtle.terms import POLARITIES
from .cells import DELTAS
from .options import SubtleMetricOptions

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
                "Percentage of positive, negative and neutral answers where the given term is positive, minus that "
                "where it is negative, with cluster intervals. 0: the given term has no effect. * significant after "
                "correction. " + words
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
        "Percentage of positive answers where the given term is positive, minus that where it is negative, for each "
        "pronoun. Full points are significant after correction; lines are cluster intervals."
    )
    return [Chart("subtle-pronouns", "ΔPL by pronoun", caption, forest(panels))]


def _of(estimates: Sequence[Estimate], factors: set[str]) -> list[Estimate]:
    return [e for e in estimates if e.metric in DELTAS and set(e.group) == factors]


def _shown(estimate: Estimate) -> bool:
    return estimate.shown


def _number(value: float | None) -> str:
    return "no data" if value is None else signed(value, 1)


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


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the differences of the whole study and by domain, and tau of the whole study."""
    taus = ("tau_b", "tau_c", "tau_c_clustered")
    chosen = [e for e in estimates if e.metric in DELTAS and "pronoun" not in e.group]
    return [*chosen, *(e for e in estimates if e.metric in taus and set(e.group) == {"coding"})]


def conclude(estimates: Sequence[Estimate]) -> str:
    """State whether positive answers are more frequent if the given term is positive."""
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
    """Describe how the estimates were computed."""
    return rendered(str(__package__), "methods.md.j2", options=options)


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
        UnitMeasure(name, percent(pl.col("chosen") == choice), 0.0, 100.0, side)
        for name, choice in zip(DELTAS, POLARITIES, strict=True)
    ]
    rows = [row for factors in ((), ("domain",)) for row in unit_rows(frame, measures, factors, *options.ways)]
    return pl.concat(rows, how="diagonal").drop("threshold")
