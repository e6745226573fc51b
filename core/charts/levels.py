"""Estimates of several runs in one forest, with the values that papers print as grey marks: a figure per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..contracts.estimates import Chart, Estimate
from .forest import BLUE, INK, MEDIUM, SMALL, new_figure, plain
from .labels import literal, shortened
from .numbers import ENDS, tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
"""Colours of Okabe and Ito; marks distinguish the same in black and white."""
PAPER = "#767676"
"""Grey of printed values."""
ROWS = 40
"""Most groups of a figure."""
ABREAST, PANELS, PANEL_ROWS = 3, 12, 180
"""Panels in a row, most panels, and most rows of all panels together."""
LEGEND = 96
"""Characters of a line of the legend, 8 of them beside each name."""
STEP = 0.8
"""Share of a row's height that the marks occupy."""
CAPTION = (
    "Each mark is the value of one model, with its interval; the dashed line is neutral. Overlapping intervals do not"
    " show equality."
)
PRINTED = " Grey marks are values that papers print."

Cell: TypeAlias = "tuple[tuple[str, object], ...]"
Runs: TypeAlias = Mapping[str, Sequence[Estimate]]


class Series(msgspec.Struct, frozen=True):
    """The values of one model, run or printed, by group."""

    name: str
    """As the figure shows it."""
    whole: str
    found: dict[Cell, Estimate]
    printed: bool
    number: int
    """Place among the runs, or among the printed models."""

    @property
    def style(self) -> dict[str, Any]:
        """Return the arguments for matplotlib."""
        colour, mark = (PAPER, MARKS) if self.printed else (COLOURS[self.number % len(COLOURS)], MARKS)
        return {
            "color": colour,
            "marker": mark[self.number % len(mark)],
            "markersize": 5,
            "markerfacecolor": "white" if self.printed else colour,
        }


def draw_levels(runs: Runs, printed: Runs | None = None) -> list[Chart]:
    """Draw a forest per measure for which at least one run has a value.

    Args:
        runs: estimates by the name of the model.
        printed: values that papers print, by the name of the model; those for groups that no run has are left out.
    """
    measures = dict.fromkeys(e.metric for found in runs.values() for e in found if e.value is not None)
    return [_chart(measure, runs, printed or {}) for measure in measures]


def _chart(measure: str, runs: Runs, printed: Runs) -> Chart:
    series = _series(measure, runs, printed)
    own = [e for one in series for e in one.found.values()]
    cells = list(dict.fromkeys(cell for one in series if not one.printed for cell in one.found))
    first = next(e for e in own if e.value is not None)
    label = first.label or measure
    axis = literal(f"{label} ({first.unit})" if first.unit else label)
    neutral = _neutral(own)
    by_model = len(cells) == 1 or len(series) > len(MARKS)
    words = {cell: _words(own) for cell, own in _varying(cells).items()}
    drawn = cells[: max(1, min(PANELS, PANEL_ROWS // len(series)))] if by_model else cells[:ROWS]
    figure = (_by_model if by_model else _by_group)(series, {cell: words[cell] for cell in drawn}, axis, neutral)
    told = [
        (_words(cell), one.whole, e.value, e.low, e.high, e.note if one.printed else "")
        for cell in cells
        for one in series
        if (e := one.found.get(cell))
    ]
    tell(figure, "", ("group", "model", *ENDS, "printed in"), told)
    left = f" The first {len(drawn)} of {len(cells)} groups; the numbers have all." if len(drawn) < len(cells) else ""
    grey = PRINTED if any(one.printed for one in series) else ""
    return Chart(f"levels-{measure}", f"{label} by model", CAPTION + grey + left, figure)


def _series(measure: str, runs: Runs, printed: Runs) -> list[Series]:
    """Return what is drawn of a measure: every run, and the printed models with a value for a group of the runs."""
    names = shortened([*runs, *printed])
    found: list[Series] = []
    known: set[Cell] = set()
    for source, of_papers in ((runs, False), (printed, True)):
        for name, estimates in source.items():
            own = {_cell(e): e for e in estimates if e.metric == measure}
            own = {cell: e for cell, e in own.items() if cell in known} if of_papers else own
            if own or not of_papers:
                number = sum(one.printed == of_papers for one in found)
                found.append(Series(names[name], name, own, of_papers, number))
                known |= set() if of_papers else set(own)
    return found


def _by_group(series: Sequence[Series], cells: Mapping[Cell, str], axis: str, neutral: float | None) -> Figure:
    """Draw a row per group, and in it a mark per model, named by a legend."""
    from matplotlib.lines import Line2D

    figure = new_figure((7.6, 0.22 * len(cells) * (1 + len(series)) + 1.8))
    axes = figure.add_subplot()
    for place, one in enumerate(series):
        shift = STEP * ((place + 0.5) / len(series) - 0.5)
        for row, cell in enumerate(cells):
            _mark(axes, row + shift, one.found.get(cell), one.style)
    _frame(axes, list(cells.values()), neutral)
    axes.set_xlabel(axis, fontsize=MEDIUM)
    keys = [Line2D([], [], linestyle="", label=_key(one.name), **one.style) for one in series]
    abreast = max(1, min(3, LEGEND // (max(len(one.name) for one in series) + 8)))
    figure.legend(handles=keys, loc="outside lower center", ncols=abreast, frameon=False, fontsize=SMALL)
    return figure


def _key(name: str) -> str:
    """Return a name for a legend, which leaves out what begins with an underscore."""
    return literal(f" {name}" if name.startswith("_") else name)


def _by_model(series: Sequence[Series], cells: Mapping[Cell, str], axis: str, neutral: float | None) -> Figure:
    """Draw a row per model and a panel per group; of many models the greatest value of the first group comes first."""
    rows = list(series)
    if len(rows) > len(MARKS):
        rows.sort(key=lambda one: _order(one.found.get(next(iter(cells)))))
    beside = min(ABREAST, len(cells))
    below = -(-len(cells) // beside)
    figure = new_figure((7.6 if beside == 1 else 2.6 + 2.7 * beside, below * (0.22 * len(rows) + 0.7) + 0.7))
    places = figure.subplots(below, beside, squeeze=False, sharex=True).ravel()
    for number, (axes, cell) in enumerate(zip(places, cells, strict=False)):
        for row, one in enumerate(rows):
            look = one.style | ({} if one.printed else {"color": BLUE, "marker": "o", "markerfacecolor": BLUE})
            _mark(axes, row, one.found.get(cell), look, told=cell in one.found)
        _frame(axes, [one.name for one in rows] if number % beside == 0 else [""] * len(rows), neutral)
        if len(cells) > 1:
            axes.set_title(literal(cells[cell]), fontsize=MEDIUM, loc="left")
        if number % beside == 0:
            for text, one in zip(axes.get_yticklabels(), rows, strict=True):
                text.set_color(PAPER if one.printed else INK)
    for axes in places[len(cells) :]:
        axes.set_visible(False)
    figure.supxlabel(axis, fontsize=MEDIUM)
    return figure


def _order(e: Estimate | None) -> tuple[bool, float]:
    value = None if e is None else e.value
    return value is None, -(value or 0.0)


def _mark(axes: Axes, row: float, e: Estimate | None, look: Mapping[str, Any], *, told: bool = False) -> None:
    if e is None or e.value is None:
        if told:
            axes.text(0.02, row, "no data", transform=axes.get_yaxis_transform(), va="center", fontsize=SMALL)
        return
    if e.low is not None and e.high is not None:
        axes.plot([e.low, e.high], [row, row], color=look["color"], linewidth=1.4)
    axes.plot([e.value], [row], linestyle="", **look)


def _frame(axes: Axes, labels: Sequence[str], neutral: float | None) -> None:
    if neutral is not None:
        axes.axvline(neutral, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(labels)), list(map(literal, labels)), fontsize=SMALL)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    plain(axes)


def _words(cell: Cell) -> str:
    return ", ".join(str(level) for _, level in cell) or "all"


def _varying(cells: Sequence[Cell]) -> dict[Cell, Cell]:
    """Return each group without the factors that have one level in all: they tell no row from another."""
    levels: dict[str, set[object]] = {}
    for name, level in (part for cell in cells for part in cell):
        levels.setdefault(name, set()).add(level)
    shown = {cell: tuple(part for part in cell if len(levels[part[0]]) > 1) for cell in cells}
    return shown if len(set(shown.values())) == len(cells) else {cell: cell for cell in cells}


def _cell(estimate: Estimate) -> Cell:
    return tuple(estimate.group.items())


def _neutral(estimates: Sequence[Estimate]) -> float | None:
    """Return the neutral value, if all have the same."""
    values = {e.neutral for e in estimates}
    return values.pop() if len(values) == 1 else None
