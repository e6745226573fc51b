"""The paper's views of several models, for comparisons of runs: Figures 2 and 10 to 22, 3 and 23 to 25, Table 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from ...core.charts.forest import SMALL, Bar, Column, Layer, grouped_bars, new_figure, stacked_bars
from ...core.charts.levels import COLOURS, draw_levels
from ...core.contracts.estimates import Chart, Estimate, Listing
from ...probes.bistereo.terms import SKINS
from .nli_charts import SAYS, SHOWN, bars_of
from .trisentbias_charts import LAYERS, MAIN, PARTS, STAR_BINOMIAL, STAR_CLUSTER

Runs = Mapping[str, Sequence[Estimate]]
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
MARKS = (("*", STAR_BINOMIAL), ("\N{DAGGER}", STAR_CLUSTER))


def preferences(runs: Runs) -> list[Chart]:
    """Draw the stacked bars of all models: a chart per axis and sentiment, a bar per model and gender."""
    main = {label: [e for e in found if MAIN in e.facts] for label, found in runs.items()}
    cells = [e.group for found in main.values() for e in found if e.metric == "z1"]
    return [_preferences(main, *cell) for cell in dict.fromkeys((str(c["axis"]), str(c["sentiment"])) for c in cells)]


def _preferences(runs: Runs, axis: str, sentiment: str) -> Chart:
    cell = {"axis": axis, "sentiment": sentiment}
    own = {label: [e for e in found if cell.items() <= e.group.items()] for label, found in runs.items()}
    genders = dict.fromkeys(str(e.group["gender"]) for found in own.values() for e in found)
    bars = [_bar(label, gender, found) for gender in genders for label, found in own.items()]
    caption = (
        "Percentage of pairs where each model prefers the desirable description (dotted), the undesirable one "
        "(crossed), or neither beyond the threshold (plain; the paper's Figure 2). Significant for the desirable in "
        "positive or the undesirable in negative context: * by pairs, uncorrected; \N{DAGGER} by clusters, corrected."
    )
    title = f"TriSentBias by model: {axis}, {sentiment} context"
    name = f"trisentbias-{axis}-{sentiment}".replace(" ", "-")
    return Chart(name, title, caption, stacked_bars(title, bars, LAYERS))


def _bar(label: str, gender: str, estimates: Sequence[Estimate]) -> Bar:
    own = [e for e in estimates if e.group["gender"] == gender]
    values = {e.metric: e.value for e in own}
    mark = "".join(sign for sign, fact in MARKS if any(fact in e.facts for e in own))
    return Bar(f"{label}\n{gender}", tuple(values.get(part) for part in PARTS), mark, gender)


def inferences(runs: Runs, effects: Sequence[str]) -> list[Chart]:
    """Draw %C and %E of all models by category and skin tone, a chart per gender; then the effects."""
    metrics = bars_of(e for found in runs.values() for e in found if e.metric in effects)
    shares = {label: [e for e in found if e.metric in metrics and "skin" in e.group] for label, found in runs.items()}
    genders = dict.fromkeys(str(e.group["gender"]) for found in shares.values() for e in found)
    main = {
        label: [e for e in found if e.metric in effects and "direction" not in e.group] for label, found in runs.items()
    }
    return [*(_inferences(shares, metrics, gender) for gender in genders), *draw_levels(main)]


def _inferences(runs: Runs, metrics: Sequence[str], gender: str) -> Chart:
    own = {label: [e for e in found if e.group["gender"] == gender] for label, found in runs.items()}
    figure = new_figure((9.6, 7.6))
    for axes, metric, name in zip(figure.subplots(2, 1), metrics, SHOWN, strict=True):
        layers = [
            (Layer(label, COLOURS[at % len(COLOURS)], HATCHES[at % len(HATCHES)]), [*_columns(found, metric)])
            for at, (label, found) in enumerate(own.items())
        ]
        grouped_bars(axes, f"{name} (%)", layers)
        axes.set_ylim(0, 105)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, fontsize=SMALL)
    caption = (
        f"{SAYS[tuple(metrics)]} contradiction and entailment, by category of attribute and skin "
        "tone, for each model, as in the paper's Figure 3. An unbiased model gives neither."
    )
    return Chart(f"bistereo-nli-models-{gender}", f"Contradiction and entailment by model, {gender}", caption, figure)


def _columns(estimates: Sequence[Estimate], metric: str) -> Iterator[Column]:
    for e in sorted(estimates, key=lambda e: SKINS.index(str(e.group["skin"]))):
        if e.metric == metric:
            yield Column(f"{e.group['category']} {e.group['skin']}", e.value, e.low, e.high)


def table_2(runs: Runs) -> list[Listing]:
    """Return the paper's Table 2: biased preferences in per cent, a row per gender, a column per model.

    Below it stand the same with the groups swapped, where these were asked.
    """
    rows = [
        {"measure": measure, "gender": gender} | {label: found.get((measure, gender)) for label, found in told.items()}
        for told in [{label: _by_gender(estimates) for label, estimates in runs.items()}]
        for measure in TABLE_2
        for gender in ("men", "women")
        if any((measure, gender) in found for found in told.values())
    ]
    caption = (
        "Percentage of validated analogies that each model completes with the stereotype (biased_preference, as in the "
        "paper's Table 2), and that with the groups swapped. The raw share has no neutral value."
    )
    schema = {"measure": pl.String, "gender": pl.String} | dict.fromkeys(runs, pl.Float64)
    return [Listing("table-2", "Biased preferences by gender and model (Table 2)", caption, pl.DataFrame(rows, schema))]


TABLE_2 = ("biased_preference", "biased_preference_swapped")


def _by_gender(estimates: Sequence[Estimate]) -> dict[tuple[str, str], float | None]:
    return {(e.metric, str(e.group["gender"])): e.value for e in estimates if [*e.group] == ["gender"]}
