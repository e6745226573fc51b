"""Where variance comes from, as bars; and what more levels would do to a standard error, as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from .forest import BLUE, INK, MEDIUM, ORANGE, SKY, SMALL, new_figure, plain
from .levels import COLOURS, MARKS
from .numbers import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Part(msgspec.Struct, frozen=True):
    """A component: its share of the variance of answers and of the squared error, both in per cent."""

    label: str
    share: float
    low: float
    high: float
    of_error: float
    error: bool
    """Whether it is in the error at all."""


def draw_components(parts: Sequence[Part]) -> Figure:
    """Draw the shares of the variance of an answer, and beside them those of the headline's squared error."""
    figure = new_figure((7.6, 0.34 * len(parts) + 1.7))
    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(parts))
    for place, part in enumerate(parts):
        left.barh(place, part.share, color=SKY, edgecolor=INK, linewidth=0.6, height=0.6)
        left.plot([part.low, part.high], [place, place], color=INK, linewidth=1.2)
        if part.error:
            right.barh(place, part.of_error, color=ORANGE, edgecolor=INK, linewidth=0.6, height=0.6, hatch="//")
            right.text(part.of_error + 1.5, place, f"{part.of_error:.0f} %", va="center", fontsize=SMALL)
        else:
            right.text(1.5, place, "no error: fixed", va="center", fontsize=SMALL, color="#555555")
    left.set_yticks(places, [part.label for part in parts], fontsize=SMALL)
    left.set_ylim(len(parts) - 0.5, -0.5)
    left.set_xlim(0, min(max((part.high for part in parts), default=100.0), 150.0) * 1.05 or 1)
    right.set_xlim(0, 118)
    for axes, told in ((left, "variance of an answer (%)"), (right, "squared error of the headline (%)")):
        axes.set_xlabel(told, fontsize=MEDIUM)
        axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        plain(axes)
    columns = ("component", "share of variance (%)", "low", "high", "share of squared error (%)")
    rows = [(p.label, p.share, p.low, p.high, p.of_error if p.error else None) for p in parts]
    tell(figure, "", columns, rows)
    return figure


def draw_designs(now: float, errors: Mapping[str, Mapping[int, float]], unit: str, wanted: float | None) -> Figure:
    """Draw the standard error with more levels of each facet, from that of the run.

    Args:
        now: standard error of the run.
        errors: by facet and by how many times its levels.
        unit: of the headline.
        wanted: the standard error that is wanted, as a line.
    """
    figure = new_figure((7.6, 3.4))
    axes: Axes = figure.add_subplot()
    ticks = sorted({1, *(times for by in errors.values() for times in by)})
    for number, (name, by) in enumerate(errors.items()):
        line = {1: now, **by}
        axes.plot(
            list(line),
            list(line.values()),
            color=COLOURS[number % len(COLOURS)],
            marker=MARKS[number % len(MARKS)],
            label=f"more of {name}",
        )
    if wanted is not None:
        axes.axhline(wanted, color=BLUE, linewidth=1.0, linestyle=(0, (4, 3)), label="wanted")
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick} x" for tick in ticks], fontsize=SMALL)
    axes.minorticks_off()
    axes.set_ylim(0, now * 1.1 or 1)
    axes.set_xlabel("levels, and with them answers, by those of the run", fontsize=MEDIUM)
    axes.set_ylabel(" ".join(filter(None, ["standard error", f"({unit})" if unit else ""])), fontsize=MEDIUM)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    plain(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL)
    rows = [(f"more of {name}", times, error) for name, by in errors.items() for times, error in by.items()]
    tell(figure, "", ("design", "times", "standard error"), [("as run", 1, now), *rows])
    return figure
