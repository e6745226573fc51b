"""The results as tables: on a terminal, and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from ._data import Corpus
from ._describe import describe
from ._heads import Classified
from ._summary import Row, Summary


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
    """Print what the trainings came to."""
    for title, head, rows in _tables(summaries, heads):
        columns = (Column(name, overflow="fold") for name in head)
        table = Table(*columns, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def markdown(summaries: Sequence[Summary], heads: Sequence[Classified]) -> str:
    """Return the same tables in Markdown."""
    lines: list[str] = []
    for title, head, rows in _tables(summaries, heads):
        lines += [f"## {title}", "", _line(head), _line(["---"] * len(head)), *map(_line, rows), ""]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _tables(summaries: Sequence[Summary], heads: Sequence[Classified]) -> list[tuple[str, list[str], list[list[str]]]]:
    found = []
    for split in dict.fromkeys(summary.split for summary in summaries):
        of_split = [summary for summary in summaries if summary.split == split]
        over, seeds = of_split[0].over, ", ".join(map(str, of_split[0].seeds))
        names = [row.category for row in of_split[0].rows]
        before = ["before", *(_number(r.before) + _turned(r.before_signed) for r in of_split[0].rows)]
        rows = [[f"{s.loss}, {s.parameter} {s.chosen:g}", *map(_after, s.rows)] for s in of_split]
        word = "seeds" if len(of_split[0].seeds) > 1 else "seed"
        title = f"Validation delta-sim, split by {split} ({word} {seeds}; 95 % intervals over {over})"
        found.append((title, ["loss", *names], [before, *rows]))
    for split in dict.fromkeys(head.split for head in heads):
        chosen = [head for head in heads if head.split == split]
        names = [row.category for row in chosen[0].rows]
        rows = [[f"{h.kind}, encoder {h.encoder}", *(_cell(r.value, r.low, r.high) for r in h.rows)] for h in chosen]
        seeds = str(chosen[0].settings.seeds)
        title = f"Macro F1 of the classifiers, split by {split} ({seeds} seeds; 95 % intervals over contexts)"
        found.append((title, ["classifier", *names], rows))
    return found


def _after(row: Row) -> str:
    return _cell(row.after, row.low, row.high) + _turned(row.after_signed)


def _turned(signed: float | None) -> str:
    return " reversed" if signed is not None and signed < 0 else ""


def _number(value: float | None) -> str:
    return "no pairs" if value is None else f"{value:.4f}"


def _cell(value: float | None, low: float | None, high: float | None) -> str:
    return _number(value) + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")
