"""The results in short on a terminal, in full as `results.md`, and as the model card of a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
from rich.table import Table

from .data import Corpus, describe
from .delta_sim import Delta
from .folder import Job
from .heads import F1
from .settings import Result
from .splits import SelectOn
from .summary import Pooled, Results, pool


def describe_table(corpus: Corpus) -> Table:
    """Return what a data set holds, by category."""
    head = ("", "contexts", "stereotypes", "anti-stereotypes", "sentences", "repeated", "both types", "kappa")
    rows = describe(corpus)
    caption = (
        "repeated: rows whose sentence stood in their context before; both types: sentences\n"
        "that a context has as either type; kappa: Cohen's, of two annotators, on ratings from 1 to 5"
    )
    if off := rows[-1].off_scale:
        caption += f";\n{off} rows have a rating off the scale and are left out of kappa"
    table = Table(*head, caption=caption)
    for row in rows:
        counts = (row.contexts, row.stereotypes, row.anti_stereotypes, row.sentences, row.repeated, row.contradicted)
        kappa = "" if row.kappa is None else f"{row.kappa:.2f}"
        table.add_row(row.category, *(f"{count:,}" for count in counts), kappa, end_section=row.category != "total")
    return table


def overview(whole: Results) -> list[Table]:
    """Return what the trainings came to overall; `report` has the categories."""
    on = " (stopped and chosen on this very part)" if whole.summaries[0].select == "validation" else ""
    deltas = Table("split by", "loss", "before", "after", "best epoch", title=f"Validation delta-sim, overall{on}")
    for one in whole.summaries:
        epochs = ", ".join(map(str, one.chosen.epochs))
        loss, first = f"{one.loss}, {one.parameter} {one.chosen.value:g}", one.rows[0]
        deltas.add_row(one.split, loss, in_words(first.before), in_words(first.after), epochs)
    scores = Table("split by", "classifier", "encoder", "macro F1", title="Classifiers, overall")
    for head in whole.classifiers:
        scores.add_row(head.split, head.kind, head.encoder, score_in_words(head.rows[0]))
    return [deltas, scores] if whole.classifiers else [deltas]


def report(whole: Results, corpus: Corpus) -> str:
    """Return all results in Markdown."""
    select = whole.summaries[0].select
    parts = dict.fromkeys((r.split, r.settings.seed, sizes(r, select)) for r in whole.trainings)
    template = _environment().get_template("results.md.jinja")
    return template.render(whole=whole, corpus=corpus, parts=parts, settings=whole.trainings[0].settings)


def card(job: Job, kept: Result, every: Sequence[Result]) -> str:
    """Return the model card of a trained encoder.

    Args:
        job: Model and data.
        kept: What its training came to.
        every: The trainings of its split and loss, of which it is the best on the tuning part.
    """
    template = _environment().get_template("card.md.jinja")
    return template.render(job=job, kept=kept, every=every, sizes=sizes(kept, job.grid.select))


def sizes(result: Result, select: SelectOn) -> str:
    """Return how many sentences each part has, in words."""
    count = result.sizes
    if select == "validation":
        return f"train {count['train']:,}, validation (which served for tuning too) {count['validation']:,}"
    return ", ".join(f"{name} {number:,}" for name, number in count.items())


def in_words(delta: Pooled | Delta) -> str:
    """Return delta-sim with its interval, and whether it is reversed."""
    pooled = delta if isinstance(delta, Pooled) else pool([delta])
    if pooled.value is None:
        return "no pairs"
    return f"{pooled.value:.4f}{_interval(pooled.low, pooled.high)}{' reversed' if pooled.reversed else ''}"


def score_in_words(score: F1) -> str:
    """Return macro F1 with its interval."""
    return "no sentences" if score.value is None else f"{score.value:.4f}{_interval(score.low, score.high)}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"delta": in_words, "score": score_in_words, "numbers": _numbers}
    return environment


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
