"""Estimates of several runs side by side: one figure per measure, a row per group, a mark per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..contracts.estimates import Chart, Estimate
from .forest import INK, MEDIUM, SMALL, new_figure, plain
from .numbers import ENDS, tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
"""Colours of Okabe and Ito; marks distinguish the same in black and white."""
ROWS = 40
STEP = 0.8
"""Share of a row's height that the marks occupy."""
CAPTION = (
    "Each mark is the value of one run, over all its units, with its interval; the dashed line is neutral. Values with"
    " overlapping intervals may still differ significantly: the tests of paired units are below."
)

Cell = tuple[tuple[str, object], ...]


def draw_levels(runs: Mapping[str, Sequence[Estimate]]) -> list[Chart]:
    """Draw one figure per measure for which at least one run has a value."""
    measures = dict.fromkeys(e.metric for found in runs.values() for e in found if e.value is not None)
    return [_chart(measure, runs) for measure in measures]


def _chart(measure: str, runs: Mapping[str, Sequence[Estimate]]) -> Chart:
    from matplotlib.lines import Line2D

    by_run = {run: {_cell(e): e for e in found if e.metric == measure} for run, found in runs.items()}
    cells = list(dict.fromkeys(cell for found in by_run.values() for cell in found))[:ROWS]
    figure = new_figure((7.6, 0.22 * len(cells) * (1 + len(runs)) + 1.8))
    axes = figure.add_subplot()
    for number, found in enumerate(by_run.values()):
        _run(axes, number, len(runs), [found.get(cell) for cell in cells])
    unit = next(e.unit for found in by_run.values() for e in found.values())
    _frame(axes, cells, f"{measure}{f' ({unit})' if unit else ''}", _neutral(by_run))
    keys = [
        Line2D([], [], linestyle="", marker=MARKS[n % 8], color=COLOURS[n % 8], label=run) for n, run in enumerate(runs)
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=min(3, len(keys)), frameon=False, fontsize=SMALL)
    told = [(_words(c), run, e.value, e.low, e.high) for c in cells for run, es in by_run.items() if (e := es.get(c))]
    tell(figure, "", ("group", "run", *ENDS), told)
    return Chart(f"levels-{measure}", f"{measure} by run", CAPTION, figure)


def _run(axes: Axes, number: int, runs: int, estimates: Sequence[Estimate | None]) -> None:
    shift = STEP * ((number + 0.5) / runs - 0.5)
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    for row, estimate in enumerate(estimates):
        if estimate is None or estimate.value is None:
            continue
        if estimate.low is not None and estimate.high is not None:
            axes.plot([estimate.low, estimate.high], [row + shift] * 2, color=colour, linewidth=1.4)
        axes.plot([estimate.value], [row + shift], marker=mark, color=colour, markersize=5, linestyle="")


def _frame(axes: Axes, cells: Sequence[Cell], label: str, neutral: float | None) -> None:
    if neutral is not None:
        axes.axvline(neutral, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(cells)), list(map(_words, cells)), fontsize=SMALL)
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_xlabel(label, fontsize=MEDIUM)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    plain(axes)


def _words(cell: Cell) -> str:
    return ", ".join(str(level) for _, level in cell) or "all"


def _cell(estimate: Estimate) -> Cell:
    return tuple(estimate.group.items())


def _neutral(by_run: Mapping[str, Mapping[Cell, Estimate]]) -> float | None:
    """Return the neutral value, if all have the same."""
    values = {e.neutral for found in by_run.values() for e in found.values()}
    return values.pop() if len(values) == 1 else None
