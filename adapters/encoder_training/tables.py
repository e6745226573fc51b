"""The results as tables: on a terminal, and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Column, Table

from .classifier import F1
from .data import Corpus
from .describe import describe
from .heads import Classified
from .summary import Summary

Cell = tuple[str, str, str]
"""A value, its interval, and whether it is reversed."""
Columns = list[tuple[tuple[str, ...], list[Cell]]]
"""Parts of a label, and a cell for each category."""


def describe_table(corpus: Corpus) -> Table:
    """Return what a data set holds, by category."""
    head = ("", "contexts", "stereotypes", "anti-stereotypes", "sentences", "repeated", "both types", "kappa")
    table = Table(
        *head,
        caption="repeated: rows whose sentence stood in their context before; both types: sentences\n"
        "that a context has as either type; kappa: Cohen's, of two annotators, on ratings from 1 to 5",
    )
    off = 0
    for row in describe(corpus):
        counts = (row.contexts, row.stereotypes, row.anti_stereotypes, row.sentences, row.repeated, row.contradicted)
        kappa = "" if row.kappa is None else f"{row.kappa:.2f}"
        table.add_row(row.category, *(f"{count:,}" for count in counts), kappa, end_section=row.category != "total")
        off = row.off_scale
    if off:
        table.caption = f"{table.caption};\n{off} rows have a rating off the scale and are left out of kappa"
    return table


def show(console: Console, summaries: Sequence[Summary], heads: Sequence[Classified]) -> None:
    """Print what the trainings came to: a line per category, a column per loss or classifier."""
    for made in _tables(summaries, heads):
        labels = (Column("\n".join(label)) for label, _ in made.columns)
        table = Table(
            Column("", no_wrap=True), *labels, title=made.title, title_justify="left", caption=made.caption or None
        )
        for place, name in enumerate(made.names):
            cells = (column[place] for _, column in made.columns)
            texts = (f"{_join(value, note)}\n{interval}".rstrip() for value, interval, note in cells)
            table.add_row(name, *texts, end_section=place < len(made.names) - 1)
        console.print(table)


def markdown(summaries: Sequence[Summary], heads: Sequence[Classified]) -> str:
    """Return the same tables in Markdown, a line per loss or classifier."""
    lines: list[str] = []
    for made in _tables(summaries, heads):
        head = (made.corner, *made.names)
        rows = [line((", ".join(label), *(_join(*cell) for cell in column))) for label, column in made.columns]
        lines += [f"## {made.title}", "", line(head), line(["---"] * len(head)), *rows, ""]
    return "\n".join(lines)


def line(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def number(value: float | None) -> str:
    """Return a delta-sim."""
    return "no pairs" if value is None else f"{value:.4f}"


class _Table(NamedTuple):
    title: str
    corner: str
    names: list[str]
    """Categories."""
    columns: Columns
    caption: str


def _tables(summaries: Sequence[Summary], heads: Sequence[Classified]) -> list[_Table]:
    splits = dict.fromkeys(summary.split for summary in summaries)
    by_loss = [_deltas(split, [summary for summary in summaries if summary.split == split]) for split in splits]
    by_head = [_scores(split, [head for head in heads if head.split == split]) for split in splits]
    return [*by_loss, *(table for table in by_head if table.columns)]


def _deltas(split: str, summaries: Sequence[Summary]) -> _Table:
    first = summaries[0]
    alike = len({summary.seeds for summary in summaries}) == 1
    told = f"{_seeds(first)}; 95 % intervals over {first.over}" if alike else "95 % intervals"
    on = "; stopped and chosen on this very part" if first.select == "validation" else ""
    before = [_delta(row.before, row.before_low, row.before_high, row.before_signed) for row in first.rows]
    columns: Columns = [(("before",) if alike else ("before", _over(first)), before)]
    for one in summaries:
        label = one.loss, f"{one.parameter} {one.chosen:g}", *(() if alike else (_over(one),)), *_given(one)
        columns.append((label, [_delta(row.after, row.low, row.high, row.after_signed) for row in one.rows]))
    notes = [
        "reversed: opposed sentences lie closer" * any(note for _, column in columns for _, _, note in column),
        "as given: no epoch brought anything on the tuning part" * any(map(_given, summaries)),
    ]
    title = f"Validation delta-sim, split by {split} ({told}{on})"
    return _Table(title, "loss", [row.category for row in first.rows], columns, "\n".join(filter(None, notes)))


def _seeds(summary: Summary) -> str:
    return f"{'seeds' if len(summary.seeds) > 1 else 'seed'} {', '.join(map(str, summary.seeds))}"


def _over(summary: Summary) -> str:
    return f"{_seeds(summary)} (over {summary.over})"


def _given(summary: Summary) -> tuple[str, ...]:
    """Say which seeds' encoders stayed as they were given."""
    stayed = [seed for seed, epoch in zip(summary.seeds, summary.epochs, strict=False) if epoch == 0]
    if not stayed:
        return ()
    return ("as given",) if len(stayed) == len(summary.seeds) else (f"as given: seed {', '.join(map(str, stayed))}",)


def _scores(split: str, heads: Sequence[Classified]) -> _Table:
    title = f"Macro F1 of the classifiers, split by {split} (mean over seeds; 95 % intervals over contexts)"
    names = [row.category for row in heads[0].rows] if heads else []
    columns: Columns = [(_head(head), [_score(row) for row in head.rows]) for head in heads]
    return _Table(title, "classifier", names, columns, "")


def _head(head: Classified) -> tuple[str, ...]:
    count = head.settings.seeds
    return head.kind, f"encoder {head.encoder}", f"{count} seed{'s' if count > 1 else ''}"


def _score(row: F1) -> Cell:
    return "no sentences" if row.value is None else f"{row.value:.4f}", _interval(row.low, row.high), ""


def _delta(value: float | None, low: float | None, high: float | None, signed: float | None) -> Cell:
    return number(value), _interval(low, high), "reversed" if signed is not None and signed < 0 else ""


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _join(*words: str) -> str:
    return " ".join(filter(None, words))
