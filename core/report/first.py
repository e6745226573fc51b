"""The first screen of a report as a table with a plot, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from ..answer import DEFINITIONS, Answer, Row
from ..answer.corrected import HEAD as CORRECTED
from ..answer.corrected import corrected_cell, is_corrected
from ..answer.records import EQUAL
from ..contracts.words import UNDEFINED
from .fields import Scale, scale_of
from .grid import Cell, Column, Grid, Plot, sort_key
from .markdown import escape, table

HEADS = ("What was measured", "For", "Value", "Interval", CORRECTED, "Unbiased", "n", "Verdict")
PLOT = "Plot"
LEGEND = (
    "The dot is the value, the bar its interval, the vertical line {line}. A full dot is significant after correction."
)


def answer_grid(answer: Answer) -> Grid:
    """Return the rows of the first screen; those of one unit are plotted on one scale."""
    scales = {
        unit: scale_of([row.estimate for row in answer.rows if row.estimate.unit == unit])
        for unit in {row.estimate.unit for row in answer.rows}
    }
    keep = _kept(answer)
    rows = tuple(_cells(row, scales[row.estimate.unit], keep) for row in answer.rows)
    plot = [Column(PLOT)] if PLOT in keep else []
    heads = (*(_column(head) for head in HEADS[:-1] if head in keep), *plot, _column(HEADS[-1]))
    return Grid("The numbers behind the answer", heads, rows)


def _column(head: str) -> Column:
    return Column(head, head in HEADS[2:-1], DEFINITIONS.get(head.lower(), ""))


def _kept(answer: Answer) -> frozenset[str]:
    """Return the columns that have content."""
    empty = {"For"} if not any(row.about for row in answer.rows) else set()
    empty |= {"Interval"} if all(row.number.low is None for row in answer.rows) else set()
    empty |= set() if is_corrected([row.estimate for row in answer.rows]) else {CORRECTED}
    empty |= {"Unbiased"} if all(row.number.neutral is None for row in answer.rows) else set()
    empty |= {"Unbiased"} if any(row.number.reference == EQUAL for row in answer.rows) else set()
    empty |= {"n"} if not any(row.number.n for row in answer.rows) else set()
    # A bare number says more than a mark on a scale of nothing.
    empty |= {PLOT} if all(row.number.low is None and row.number.neutral is None for row in answer.rows) else set()
    return frozenset((*HEADS, PLOT)) - empty


def _texts(row: Row) -> dict[str, str]:
    number = row.number
    return dict(
        zip(
            HEADS,
            (
                row.label,
                row.about or "all",
                number.short,
                number.spread,
                corrected_cell(row.estimate),
                number.expected,
                f"{number.n:,}" if number.n else UNDEFINED,
                row.verdict,
            ),
            strict=True,
        )
    )


def _cells(row: Row, scale: Scale, keep: frozenset[str]) -> tuple[Cell, ...]:
    texts, e = _texts(row), row.estimate
    first = Cell(row.label, meaning=row.meaning)
    middle = (Cell(texts[head], sort_key(e.value)) for head in HEADS[1:-1] if head in keep)
    value, low, high, neutral = (scale.place(end) for end in (e.value, e.low, e.high, e.neutral))
    plot = Plot(value, low, high, neutral, e.shown) if value is not None else None
    return (first, *middle, *([Cell("", plot=plot)] if PLOT in keep else []), Cell(row.verdict))


def legend(answer: Answer) -> str:
    """Return how the plots of the rows are read; empty where there are none."""
    if not answer.rows or PLOT not in _kept(answer):
        return ""
    bare = any(row.number.low is None for row in answer.rows)
    equal = any(row.number.reference == EQUAL for row in answer.rows)
    told = LEGEND.format(line="no difference" if equal else "an unbiased model")
    return f"{told}{' A diamond has no interval.' if bare else ''}"


def answer_markdown(answer: Answer) -> str:
    """Return the first screen as Markdown, escaped, from the question to what was missing."""
    return "\n".join(_lines(answer)).rstrip() + "\n"


def _lines(answer: Answer) -> Iterator[str]:
    yield from (f"**{escape(answer.question)}**{f' Asked of {escape(answer.model)}.' if answer.model else ''}", "")
    if answer.preliminary:
        yield from (escape(answer.preliminary), "")
    for sentence in answer.first:
        yield from (escape(sentence), "")
    for reply in answer.replies:
        asks = f"{escape(reply.asks)} " if reply.asks != answer.question else ""
        yield from (f"{asks}**{escape(reply.verdict)}.** {escape(reply.sentence)}", "")
        yield from (f"- {escape(more)}" for more in reply.more)
        if reply.more:
            yield ""
    if answer.rows:
        keep = [head for head in HEADS if head in _kept(answer)]
        yield from table(keep, [[_texts(row)[head] for head in keep] for row in answer.rows])
    for note in answer.notes:
        yield from (escape(note), "")
    yield from (f"Missing: {escape(answer.missing)} {escape(answer.mend)}".rstrip(), "")
