"""results.md: what was trained on what, how to read the numbers, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from .cells import sizes
from .data import Corpus
from .results import Results
from .summary import Summary, Tried
from .tables import line, markdown, number
from .train import TrainSettings

_READ = """## How to read it

Delta-sim is the mean cosine of two sentences of one context and one type, less that of two of one context and both
types, over the validation part, as an absolute value: it is never below zero, so a small one is no evidence.
*reversed*: the difference is below zero, opposed sentences lie closer than alike ones. With several seeds the value is
that of the mean difference, signs kept, and the 95 % interval is Student's over the seeds; with one seed the interval
resamples contexts. Both are folded at zero last: an interval that begins at 0 does not tell which way the difference
goes. `mean` is that of the categories' values and has no interval. `before` is the encoder as it was given.
"""
_SELECT = {
    "inner": "Training stopped, and parameters were chosen, by the tuning part, which is not reported.",
    "validation": "**Training stopped, and parameters were chosen, by the validation part itself** "
    "(`--select validation`): the values are better than they would be on sentences that had no say.",
}


def report(whole: Results, corpus: Corpus) -> str:
    """Return all results in Markdown."""
    select = whole.summaries[0].select
    parts = [
        [f"# Encoder trained by `prejudge train-encoder`: {whole.model}", ""],
        [f"Encoder as it was given: `{whole.model}`, `{whole.digest}`.", ""],
        [f"Data ({len(corpus.sentences):,} sentences in {corpus.contexts} contexts):", ""],
        [*(f"- `{name}`, sha256 `{digest}`" for name, digest in whole.data.items()), ""],
        [*_parts(whole), "", _SELECT[select], ""],
        [_settings(whole.trainings[0].settings), ""],
        [_READ],
        [markdown(whole.summaries, whole.classifiers)],
        _chosen(whole.summaries),
        ["", "Best encoders, by the tuning part:", ""],
        [f"- split by {split}: `{folder}`" for split, folder in whole.best.items()],
    ]
    return "\n".join(text for part in parts for text in part) + "\n"


def _settings(settings: TrainSettings) -> str:
    return (
        f"AdamW, learning rate {settings.learning_rate:g}, weight decay {settings.weight_decay:g}; at most "
        f"{settings.batch} sentences per batch, whole contexts; at most {settings.epochs} epochs, and an end after "
        f"{settings.patience} that brought nothing."
    )


def _parts(whole: Results) -> Iterator[str]:
    yield "Sentences of each part, by split and seed (`held-out.csv` names them):"
    yield ""
    yield line(("split by", "seed", "sentences"))
    yield line(["---"] * 3)
    select = whole.summaries[0].select
    yield from dict.fromkeys(line((r.split, str(r.settings.seed), sizes(r, select))) for r in whole.trainings)


def _chosen(summaries: list[Summary]) -> list[str]:
    head = ("split by", "loss", "parameter", "tuning delta-sim", "seeds", "best epoch of each seed", "")
    rows = [line(_tried(summary, one)) for summary in summaries for one in summary.tried]
    return [
        "## What was tried and chosen",
        "",
        "*Tuning delta-sim*: with its sign, mean over seeds of each seed's best epoch. Epoch 0 is the encoder as",
        "given: no epoch brought anything on the tuning part.",
        "",
        line(head),
        line(["---"] * len(head)),
        *rows,
    ]


def _tried(summary: Summary, one: Tried) -> tuple[str, ...]:
    seeds, epochs = (", ".join(map(str, numbers)) for numbers in (one.seeds, one.epochs))
    chosen = "chosen" if one.value == summary.chosen else ""
    parameter = f"{summary.parameter} {one.value:g}"
    return summary.split, summary.loss, parameter, number(one.tuning), seeds, epochs, chosen
