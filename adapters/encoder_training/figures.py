"""Two figures of a split: delta-sim by category and loss, and the sentences before and after training, by t-SNE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.charts.forest import BLUE, ORANGE, new_figure
from ...core.charts.levels import draw_levels
from ...core.contracts.estimates import Estimate, Interval
from .data import Bools, Corpus, Floats, Ints
from .splits import SplitBy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .results import Results


def delta_figure(results: Sequence[Results], split: SplitBy) -> Figure:
    """Draw validation delta-sim of one split: a row per encoder and category, a mark per loss and before training."""
    on = " (stopped and chosen by this part)" if results[0].select == "validation" else ""
    measure = f"validation delta-sim, split by {split}{on}"
    rows = [
        (f"{whole.model}: {category}", name, pooled)
        for whole in results
        for one in whole.chosen
        if one.split == split
        for name, found in (("before training", one.before), (one.name, one.after))
        for category, pooled in found.items()
        if category != "mean"
    ]
    runs: dict[str, dict[str, Estimate]] = {}
    for place, name, pooled in rows:
        runs_reversed = [run for other, run, found in rows if other == place and found.reversed]
        names = ", ".join(dict.fromkeys(run.partition(",")[0] for run in runs_reversed))
        label = place + (f"\n(reversed: {names})" if names else "")
        ends = Interval(pooled.low, pooled.high)
        estimate = Estimate(metric=measure, group={"": label}, value=pooled.value, neutral=0.0, interval=ends)
        runs.setdefault(name, {})[place] = estimate
    (chart,) = draw_levels({run: list(found.values()) for run, found in runs.items()})
    return chart.figure


def tsne_panels(vectors: tuple[Floats, Floats], corpus: Corpus, rows: Ints, title: str) -> Figure:
    """Draw the held-out sentences of each category in two dimensions, before and after training.

    Args:
        vectors: Of the rows, by the encoder before and after training: [rows, width] each.
        corpus: All sentences.
        rows: The held-out ones.
        title: Which encoder, and which sentences.
    """
    figure = new_figure((max(6.0, 3.0 * len(corpus.categories)), 6))
    figure.suptitle(title, fontsize=10)
    axes = figure.subplots(2, len(corpus.categories), squeeze=False)
    for row, label in enumerate(("before", "after")):
        for column, name in enumerate(corpus.categories):
            chosen = corpus.category[rows] == column
            _scatter(axes[row, column], vectors[row][chosen], corpus.stereotype[rows][chosen])
            axes[row, column].set_title(f"{name}, {label}", fontsize=9)
    shown = [axis.get_legend_handles_labels() for axis in axes[0]]
    figure.legend(*max(shown, key=lambda pair: len(pair[1])), loc="outside lower center", ncols=2, frameon=False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


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
        (stereotype, ORANGE, "o", "stereotype"),
        (~stereotype, BLUE, "^", "anti-stereotype"),
    ):
        axis.scatter(flat[kind, 0], flat[kind, 1], s=14, c=colour, marker=marker, label=label, alpha=0.8)
