"""The figures of the discovery studies: bias levels as heat maps (the paper's Figure 7), valence, overlap.

Figures show no associations: these are among the examples, which are hidden until requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ...core.charts.forest import BLUE, INK, MEDIUM, SMALL, Panel, Point, forest, new_figure
from ...core.charts.numbers import tell
from ...core.contracts.estimates import Chart, Estimate
from .measures import OVERLAP, SHARE, STEPS, VALENCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ABREAST = 3
"""Heat maps in a row."""
SHADES = ("#FFFFFF", BLUE)
"""White to blue, which is also dark in greyscale."""


class Map(msgspec.Struct, frozen=True):
    """A heat map: percentages by row and column; None where there is no data."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: dict[tuple[str, str], float | None]


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the figures there are estimates for."""
    return [*_levels(estimates), *_valences(estimates), *_overlaps(estimates)]


def heat_maps(maps: Sequence[Map]) -> Figure:
    """Draw heat maps, some side by side, each cell with its number."""
    wide, high = (max(len(getattr(one, side)) for one in maps) for side in ("columns", "rows"))
    beside = min(ABREAST, len(maps))
    below = -(-len(maps) // beside)
    size = (1.9 + beside * (0.55 * wide + 0.4), below * (0.32 * high + 1.5))
    figure = new_figure(size)
    places = figure.subplots(below, beside, squeeze=False).ravel()
    for number, (axes, one) in enumerate(zip(places, maps, strict=False)):
        _heat_map(axes, one, named=number % beside == 0 or one.rows != maps[number - 1].rows)
    for axes in places[len(maps) :]:
        axes.set_visible(False)
    return figure


def _heat_map(axes: Axes, one: Map, *, named: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shades", SHADES)
    cells = [[one.values.get((row, column)) for column in one.columns] for row in one.rows]
    table = np.array(cells, dtype=np.float64)
    axes.imshow(table, cmap=shades, vmin=0, vmax=100, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        text = "–" if np.isnan(value) else f"{value:.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=SMALL, color="white" if value > 55 else INK)
    axes.set_xticks(range(len(one.columns)), list(one.columns), rotation=40, ha="right", fontsize=SMALL)
    axes.set_yticks(range(len(one.rows)), list(one.rows) if named else [""] * len(one.rows), fontsize=SMALL)
    axes.set_title(one.title, fontsize=MEDIUM, loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    told = ((row, *(one.values.get((row, column)) for column in one.columns)) for row in one.rows)
    tell(axes.figure, one.title, ("row", *one.columns), told)


def _levels(estimates: Sequence[Estimate]) -> list[Chart]:
    found = [e for e in estimates if e.metric == SHARE and "dimension" in e.group]
    maps = []
    for modality, setting in dict.fromkeys((e.group["modality"], e.group["setting"]) for e in found):
        own = [e for e in found if (e.group["modality"], e.group["setting"]) == (modality, setting)]
        values = {(str(e.group["dimension"]), str(e.group["level"])): e.value for e in own}
        maps.append(Map(f"{setting} ({modality})", _names(own, "dimension"), STEPS, values))
    caption = "Percentage of readable judgements at each step of the scale (the paper's Figure 7)."
    return [Chart("dora-levels", "Bias levels by dimension", caption, heat_maps(maps))] if maps else []


def _valences(estimates: Sequence[Estimate]) -> list[Chart]:
    maps = []
    for name in VALENCES:
        own = [e for e in estimates if e.metric == name and "dimension" in e.group]
        if own:
            values = {(str(e.group["dimension"]), str(e.group["setting"])): e.value for e in own}
            maps.append(Map(name, _names(own, "dimension"), _names(own, "setting"), values))
    caption = "Percentage of associations that are negative or toxic (the paper's Figures 3, 4 and 6)."
    return [Chart("dora-valence", "Valence by dimension", caption, heat_maps(maps))] if maps else []


def _overlaps(estimates: Sequence[Estimate]) -> list[Chart]:
    found = [e for e in estimates if e.metric == OVERLAP]
    if not found:
        return []
    points = [
        Point(
            f"{e.group['modality']} {e.group['setting']} and {e.group['against']}",
            e.value,
            e.neutral,
            e.value if e.neutral is not None else None,
            e.p_adjusted is not None and e.p_adjusted <= 0.05,
        )
        for e in found
    ]
    caption = (
        "Associations of both settings as a share of those of either (Jaccard). Full points are significantly above "
        "the overlap of random descriptors, after correction; the line is that overlap."
    )
    return [Chart("dora-overlap", "Overlap of settings", caption, forest([Panel("", "Jaccard", points)]))]


def _names(estimates: Sequence[Estimate], factor: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(e.group[factor]) for e in estimates))
