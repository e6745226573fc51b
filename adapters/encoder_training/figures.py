"""Two figures: delta-sim by encoder and loss, and the sentences of each category before and after, by t-SNE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .data import Bools, Corpus, Floats, Ints
from .settings import LossName
from .summary import Pooled, Summary

STEREO_COLOUR, ANTI_COLOUR, BEFORE_COLOUR, EDGE = "#D55E00", "#0072B2", "#BBBBBB", "#222222"
COLOURS: dict[LossName, str] = {
    "nt-xent": "#56B4E9",
    "nt-bxent": "#E69F00",
    "pairwise": "#009E73",
    "triplet": "#CC79A7",
}
REVERSED, REVERSED_WORDS = "////", "reversed: opposed sentences lie closer"
FLAT = 3.0
"""A panel whose axis would be as many times too high has an axis of its own."""
BEYOND = 2.0
"""An interval is drawn to this many times the highest bar of its panel, with an arrow where it goes on."""
Bars = list[Pooled]


def delta_bars(summaries: Sequence[Summary]) -> Figure:
    """Draw validation delta-sim by category: a panel per encoder and split, a bar per loss, before in grey."""
    panels: dict[tuple[str, str], list[Summary]] = {}
    for summary in summaries:
        panels.setdefault((summary.model, summary.split), []).append(summary)
    figure = Figure(figsize=(10, 3.4 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    tops = [_top(chosen) for chosen in panels.values()]
    for axis, ((model, split), chosen), top in zip(axes, panels.items(), tops, strict=True):
        own = FLAT * top < max(tops)
        axis.set_ylim(0, top if own else max(tops))
        _bars(axis, chosen)
        axis.set_title(f"{model}, split by {split}{_remarks(chosen, own)}", loc="left", fontsize=10)
    return figure


def _remarks(summaries: Sequence[Summary], own: bool) -> str:
    chosen_on = " (stopped and chosen on this part)" if summaries[0].select == "validation" else ""
    return chosen_on + (" (axis of its own)" if own else "")


def _top(summaries: Sequence[Summary]) -> float:
    """Return how high a panel's axis is: over all bars, and no further over them than `BEYOND`."""
    shown = [bar for summary in summaries for bars in _both(summary) for bar in bars]
    bars = max((bar.value for bar in shown if bar.value is not None), default=0.0)
    ends = max((bar.high for bar in shown if bar.high is not None), default=0.0)
    return 1.08 * max(bars, min(ends, BEYOND * bars)) or 1.0


def _both(summary: Summary) -> tuple[Bars, Bars]:
    """Return value, ends and whether it is reversed, of each category: before and after."""
    rows = [row for row in summary.rows if row.category != "mean"]
    before, after = [row.before for row in rows], [row.after for row in rows]
    return before, after


def tsne_panels(vectors: tuple[Floats, Floats], corpus: Corpus, rows: Ints, title: str) -> Figure:
    """Draw the held-out sentences of each category in two dimensions, before and after.

    Args:
        vectors: Of the rows, by the encoder as it was given and as it was trained: [rows, width] each.
        corpus: All sentences.
        rows: The held-out ones.
        title: Which encoder, and which sentences.
    """
    figure = Figure(figsize=(max(6.0, 3.0 * len(corpus.categories)), 6), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axes = figure.subplots(2, len(corpus.categories), squeeze=False)
    for row, label in enumerate(("before", "after")):
        for place, name in enumerate(corpus.categories):
            chosen = corpus.category[rows] == place
            _scatter(axes[row, place], vectors[row][chosen], corpus.stereotype[rows][chosen])
            axes[row, place].set_title(f"{name}, {label}", fontsize=9)
    shown = [axis.get_legend_handles_labels() for axis in axes[0]]
    handles, labels = max(shown, key=lambda pair: len(pair[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    return path


def _bars(axis: Axes, summaries: Sequence[Summary]) -> None:
    names = [row.category for row in summaries[0].rows if row.category != "mean"]
    width = 0.8 / (len(summaries) + 1)
    places = np.arange(len(names), dtype=np.float64)
    sets = [(_both(summaries[0])[0], "before", BEFORE_COLOUR)]
    sets += [(_both(s)[1], f"{s.loss} ({s.parameter} {s.chosen.value:g})", COLOURS[s.loss]) for s in summaries]
    for number, (bars, label, colour) in enumerate(sets):
        _set(axis, places + number * width, width, bars, (label, colour))
    edge: dict[str, Any] = {"edgecolor": EDGE, "linewidth": 0.6}
    handles: list[Artist] = [Patch(facecolor=colour, label=label, **edge) for _, label, colour in sets]
    if any(bar.reversed for bars, *_ in sets for bar in bars):
        handles.append(Patch(facecolor="white", hatch=REVERSED, label=REVERSED_WORDS, **edge))
    if axis.lines:
        handles.append(Line2D([], [], marker="^", color=EDGE, linewidth=1, markersize=5, label="interval goes on"))
    axis.set_xticks(places + 0.4 - width / 2, names)
    axis.set_ylabel("validation delta-sim")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(handles=handles, fontsize=8, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))


def _set(axis: Axes, at: Floats, width: float, bars: Bars, look: tuple[str, str]) -> None:
    """Draw the bars of one loss, or of the encoder as it was given, with their intervals."""
    label, colour = look
    top = axis.get_ylim()[1]
    heights = [math.nan if bar.value is None else bar.value for bar in bars]
    drawn = axis.bar(at, heights, width, label=label, color=colour, edgecolor=EDGE, linewidth=0.6)
    for place, patch, bar in zip(at, drawn, bars, strict=True):
        patch.set_hatch(REVERSED if bar.reversed else "")
        if bar.low is not None and bar.high is not None:
            axis.vlines(place, bar.low, min(bar.high, top), color=EDGE, linewidth=1)
            if bar.high > top:
                axis.plot([place], [top], marker="^", color=EDGE, markersize=5, clip_on=False)


def _scatter(axis: Axes, vectors: Floats, stereotype: Bools) -> None:
    from sklearn.manifold import TSNE

    axis.set_xticks([])
    axis.set_yticks([])
    if len(vectors) < 4:
        axis.text(0.5, 0.5, "too few sentences", ha="center", transform=axis.transAxes)
        return
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    flat = TSNE(perplexity=perplexity, init="random", random_state=0, metric="cosine").fit_transform(vectors)
    for kind, colour, marker, label in (
        (True, STEREO_COLOUR, "o", "stereotype"),
        (False, ANTI_COLOUR, "^", "anti-stereotype"),
    ):
        chosen = stereotype == kind
        axis.scatter(flat[chosen, 0], flat[chosen, 1], s=14, c=colour, marker=marker, label=label, alpha=0.8)
