"""Two figures: delta-sim by encoder and loss, and the sentences of each category before and after, by t-SNE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._data import Bools, Corpus, Ints
from ._similarity import Floats
from ._summary import Summary

STEREO_COLOUR, ANTI_COLOUR, BEFORE_COLOUR = "#D55E00", "#0072B2", "#BBBBBB"
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7")
HATCHES = ("", "//", "..", "xx")


def delta_bars(summaries: Sequence[Summary]) -> Figure:
    """Draw validation delta-sim by category: a panel per encoder and split, a bar per loss, before in grey."""
    panels = list(dict.fromkeys((summary.model, summary.split) for summary in summaries))
    figure = Figure(figsize=(10, 3.4 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharey=True, squeeze=False)[:, 0]
    for axis, (model, split) in zip(axes, panels, strict=True):
        _bars(axis, [summary for summary in summaries if (summary.model, summary.split) == (model, split)])
        axis.set_title(f"{model}, split by {split}", loc="left")
    return figure


def tsne_panels(before: Floats, after: Floats, corpus: Corpus, rows: Ints) -> Figure:
    """Draw the held-out sentences of each category in two dimensions, before and after.

    Args:
        before: Vectors of the rows: [rows, width].
        after: Vectors of the trained encoder: [rows, width].
        corpus: All sentences.
        rows: The held-out ones.
    """
    figure = Figure(figsize=(3.0 * len(corpus.categories), 6), layout="constrained")
    axes = figure.subplots(2, len(corpus.categories), squeeze=False)
    for row, (label, vectors) in enumerate((("before", before), ("after", after))):
        for place, name in enumerate(corpus.categories):
            chosen = corpus.category[rows] == place
            _scatter(axes[row, place], vectors[chosen], corpus.stereotype[rows][chosen])
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
    places = np.arange(len(names))
    before = [next(r.before for r in summaries[0].rows if r.category == name) for name in names]
    axis.bar(places, _numbers(before), width, label="before", color=BEFORE_COLOUR, edgecolor="#222222", linewidth=0.6)
    for number, summary in enumerate(summaries):
        rows = [next(row for row in summary.rows if row.category == name) for name in names]
        at = places + (number + 1) * width
        look = number % len(COLOURS)
        values = _numbers([row.after for row in rows])
        axis.bar(
            at,
            values,
            width,
            label=f"{summary.loss} ({summary.parameter} {summary.chosen:g})",
            color=COLOURS[look],
            hatch=HATCHES[look],
            edgecolor="#222222",
            linewidth=0.6,
        )
        low, high = _numbers([row.low for row in rows]), _numbers([row.high for row in rows])
        axis.vlines(at, low, high, color="#222222", linewidth=1)
    axis.set_xticks(places + 0.4 - width / 2, names)
    axis.set_ylabel("validation delta-sim")
    axis.spines[["top", "right"]].set_visible(False)
    columns = len(summaries) + 1
    axis.legend(fontsize=8, frameon=False, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.1))


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


def _numbers(values: Sequence[float | None]) -> list[float]:
    """Return values with NaN, which is not drawn, for what is missing."""
    return [float("nan") if value is None else value for value in values]
