"""Forest plots with matplotlib `Figure` objects, without pyplot and rcParams.

Colours are those of Okabe and Ito, which are safe for colour blindness; hatches distinguish the same in black and
white.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .numbers import ENDS, tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..contracts.estimates import Estimate

SKY, ORANGE, BLUE, GREY, INK = "#56B4E9", "#E69F00", "#0072B2", "#EDEDED", "#222222"
LEAST_LABEL = 4.0
"""Percentage below which a segment is too low for its number."""
SMALL, MEDIUM = 8.5, 10.0


class Bar(msgspec.Struct, frozen=True):
    """One stacked bar: percentages from the bottom up, and the mark above it."""

    label: str
    parts: tuple[float | None, ...]
    mark: str = ""
    group: str = ""


class Layer(msgspec.Struct, frozen=True):
    """Style of one segment of every bar."""

    label: str
    colour: str
    hatch: str = ""


class Column(msgspec.Struct, frozen=True):
    """A bar with its interval and mark."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    mark: str = ""


class Point(msgspec.Struct, frozen=True):
    """A row of a forest plot: a full mark if `shown`, otherwise hollow; a diamond if there is no interval."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    shown: bool = False

    @classmethod
    def of(cls, estimate: Estimate, *hidden: str) -> Point:
        """Return the point of an estimate; its label is its group, but for the factors that are `hidden`."""
        label = ", ".join(str(level) for name, level in estimate.group.items() if name not in hidden)
        return cls(label or "all", estimate.value, estimate.low, estimate.high, estimate.shown)


class Mark(msgspec.Struct, frozen=True):
    """Style of one kind of point in a forest plot."""

    label: str
    marker: str
    face: str

    @property
    def style(self) -> dict[str, Any]:
        """Return the arguments for matplotlib."""
        return {"marker": self.marker, "markersize": 6, "markerfacecolor": self.face, "markeredgecolor": BLUE}


MARKS = {
    (True, True): Mark("significant after correction", "o", BLUE),
    (True, False): Mark("not significant", "o", "white"),
    (False, True): Mark("significant, without interval", "D", BLUE),
    (False, False): Mark("no interval", "D", "white"),
}
"""Styles by whether there is an interval, and whether the difference is significant."""


class Panel(msgspec.Struct, frozen=True):
    """A forest plot: rows from the top, and the value of an unbiased model."""

    title: str
    xlabel: str
    points: Sequence[Point]
    neutral: float | None = 0.0
    """None if no single value is neutral; then there is no line."""


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure of this size in inches. Imports matplotlib only now: most commands draw nothing."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def stacked_bars(title: str, bars: Sequence[Bar], layers: Sequence[Layer]) -> Figure:
    """Draw percentages as stacked bars with their numbers; a bar without numbers has the text `no data`."""
    from matplotlib.patches import Patch

    figure = new_figure((max(4.5, 1.15 * len(bars) + 1.4), 4.8))
    axes = figure.add_subplot()
    places = _places(bars)
    for place, bar in zip(places, bars, strict=True):
        _stack(axes, place, bar, layers)
    axes.set_xticks(places, [bar.label for bar in bars], fontsize=MEDIUM)
    axes.set_ylim(0, 109)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("pairs (%)", fontsize=MEDIUM)
    axes.set_title(title, fontsize=MEDIUM + 1.5, loc="left")
    plain(axes)
    keys = [Patch(facecolor=x.colour, edgecolor=INK, hatch=x.hatch, label=x.label, linewidth=0.6) for x in layers]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(layers), frameon=False, fontsize=SMALL)
    heads = ("bar", *(layer.label for layer in layers), "mark")
    tell(figure, "", heads, ((_line(bar.label), *bar.parts, bar.mark) for bar in bars))
    return figure


def forest(panels: Sequence[Panel]) -> Figure:
    """Draw estimates with their intervals as one forest plot per panel, side by side, with a legend of the marks."""
    from matplotlib.lines import Line2D

    rows = max(len(panel.points) for panel in panels)
    width = 7.2 if len(panels) == 1 else 5.0 * len(panels)
    figure = new_figure((width, 0.3 * rows + 2.0))
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _forest(axes, panel)
    drawn = {_state(point) for panel in panels for point in panel.points if point.value is not None}
    keys = [Line2D([], [], linestyle="", label=mark.label, **mark.style) for at, mark in MARKS.items() if at in drawn]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(MARKS), frameon=False, fontsize=SMALL)
    return figure


def _state(point: Point) -> tuple[bool, bool]:
    return point.low is not None and point.high is not None, point.shown


WHISKER = 0.17
"""Distance of the whisker below, and of the number above, the middle of a horizontal bar: they must not overlap."""


def columns(title: str, xlabel: str, bars: Sequence[Column], neutral: float) -> Figure:
    """Draw percentages as horizontal bars, which leave room for long labels, with whiskers and a line at `neutral`."""
    figure = new_figure((7.6, 0.42 * len(bars) + 1.5))
    axes = figure.add_subplot()
    for row, bar in enumerate(bars):
        _column(axes, row, bar)
    axes.axvline(neutral, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=MEDIUM)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, 108)
    axes.set_xticks(range(0, 101, 10))
    axes.set_xlabel(xlabel, fontsize=MEDIUM)
    axes.set_title(title, fontsize=MEDIUM + 1.5, loc="left")
    plain(axes)
    tell(figure, "", ("bar", *ENDS, "mark"), ((_line(b.label), b.value, b.low, b.high, b.mark) for b in bars))
    return figure


def grouped_bars(axes: Axes, ylabel: str, layers: Sequence[tuple[Layer, Sequence[Column]]]) -> None:
    """Draw upright bars with whiskers, side by side per label: of every layer that has a bar of the label."""
    labels = list(dict.fromkeys(bar.label for _, bars in layers for bar in bars))
    width = 0.8 / len(layers)
    for place, (layer, bars) in enumerate(layers):
        look: dict[str, Any] = {
            "color": layer.colour,
            "hatch": layer.hatch,
            "edgecolor": INK,
            "linewidth": 0.6,
            "label": layer.label,
        }
        at = [labels.index(bar.label) + width * (place - (len(layers) - 1) / 2) for bar in bars]
        axes.bar(at, [bar.value or 0.0 for bar in bars], 0.93 * width, **look)
        for x, bar in zip(at, bars, strict=True):
            if bar.low is not None and bar.high is not None:
                axes.plot([x, x], [bar.low, bar.high], color=INK, linewidth=1.2)
            if bar.value is None:
                axes.text(x, 1, "no data", rotation=90, ha="center", va="bottom", fontsize=SMALL)
            elif bar.mark:
                top = max(bar.value, bar.high or bar.value, 0.0)
                axes.text(x, top, bar.mark, ha="center", va="bottom", fontsize=MEDIUM + 2)
    axes.set_xticks(range(len(labels)), [label.replace(" ", "\n") for label in labels], fontsize=SMALL)
    axes.set_ylabel(ylabel, fontsize=MEDIUM)
    axes.spines[["top", "right"]].set_visible(False)
    told = [(_line(b.label), layer.label, b.value, b.low, b.high, b.mark) for layer, bars in layers for b in bars]
    tell(axes.figure, ylabel, ("bar", "series", *ENDS, "mark"), told)


def _line(label: str) -> str:
    return label.replace("\n", ", ")


def _column(axes: Axes, row: int, bar: Column) -> None:
    if bar.value is None:
        axes.text(1, row, "no data", va="center", fontsize=SMALL, color=INK)
        return
    axes.barh(row, bar.value, 0.7, color=SKY, edgecolor=INK, linewidth=0.6)
    end, above = bar.value, 0.0
    if bar.low is not None and bar.high is not None:
        place = row + WHISKER
        axes.plot([bar.low, bar.high], [place, place], color=INK, linewidth=1.4, marker="|", markersize=6)
        end, above = bar.high, WHISKER
    axes.text(1.5, row - above, f"{bar.value:.1f}", va="center", fontsize=SMALL, color=INK)
    axes.text(end + 1.5, row, bar.mark, va="center", fontsize=MEDIUM + 2, color=INK)


def _places(bars: Sequence[Bar]) -> list[float]:
    """Add a gap between groups."""
    places, gap = [], 0.0
    for index, bar in enumerate(bars):
        gap += 0.5 if index and bar.group != bars[index - 1].group else 0.0
        places.append(index + gap)
    return places


def _stack(axes: Axes, place: float, bar: Bar, layers: Sequence[Layer]) -> None:
    base = 0.0
    for part, layer in zip(bar.parts, layers, strict=True):
        if part is None:
            axes.text(place, 3, "no data", ha="center", rotation=90, fontsize=SMALL, color=INK)
            return
        axes.bar(place, part, 0.78, base, color=layer.colour, hatch=layer.hatch, edgecolor=INK, linewidth=0.6)
        if part >= LEAST_LABEL:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.4}
            axes.text(place, base + part / 2, f"{part:.1f}", ha="center", va="center", fontsize=SMALL, bbox=box)
        base += part
    axes.text(place, 101, bar.mark, ha="center", va="bottom", fontsize=MEDIUM + 2, color=INK)


def _forest(axes: Axes, panel: Panel) -> None:
    if panel.neutral is not None:
        axes.axvline(panel.neutral, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    for row, point in enumerate(panel.points):
        if point.value is None:
            axes.text(panel.neutral or 0.0, row, " no data", va="center", fontsize=SMALL, color=INK)
            continue
        if point.low is not None and point.high is not None:
            axes.plot([point.low, point.high], [row, row], color=BLUE, linewidth=1.6, solid_capstyle="butt")
        axes.plot(point.value, row, **MARKS[_state(point)].style)
    axes.set_yticks(range(len(panel.points)), [point.label for point in panel.points], fontsize=SMALL)
    axes.set_ylim(len(panel.points) - 0.4, -0.6)
    axes.margins(x=0.08)
    axes.set_xlabel(panel.xlabel, fontsize=SMALL)
    axes.set_title(panel.title, fontsize=MEDIUM, loc="left")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    plain(axes)
    told = [
        (p.label, p.value, p.low, p.high, MARKS[_state(p)].label if p.value is not None else "") for p in panel.points
    ]
    tell(axes.figure, panel.title, ("row", *ENDS, "mark"), told)


def plain(axes: Axes) -> None:
    """Remove the upper and right frame, and the ticks beside names."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=MEDIUM if axes.get_ylabel() else SMALL)
