"""The answer of a run on the terminal, in the order of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..answer import Answer, Row
from ..answer.corrected import corrected_cell, is_corrected
from ..answer.records import UNBIASED
from ..contracts.words import UNDEFINED
from .outlet import single_line


def show_answer(answer: Answer, console: Console) -> None:
    """Print the question, the verdicts, the numbers behind them, and what was missing."""
    console.print(answer.question, style="bold")
    if answer.model:
        console.print(f"Asked of {answer.model}")
    if answer.preliminary:
        console.print(answer.preliminary)
    for sentence in answer.first:
        console.print(single_line(sentence))
    for reply in answer.replies:
        console.print()
        if reply.asks != answer.question:
            console.print(reply.asks)
        console.print(Text.assemble((f"{single_line(reply.verdict)}. ", "bold"), single_line(reply.sentence)))
        for more in reply.more:
            console.print(more)
        # The sentence above tells a single number with all that a table would.
        for rows in _by_measure(reply.rows) if len(reply.rows) > 1 or reply.number is None else ():
            console.print(numbers_table(rows))
    for note in answer.notes:
        console.print(note)
    console.print(f"Missing: {answer.missing}")
    if answer.mend:
        console.print(answer.mend)


def _by_measure(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield rows of one measure and unit together."""
    for _, found in groupby(rows, lambda row: (row.label, row.number.unit)):
        yield list(found)


def numbers_table(rows: Sequence[Row]) -> Table:
    """Return numbers of one measure as a table; the measure and its unit stand above it."""
    first = rows[0]
    unit = f", in {first.number.unit}" if first.number.unit else ""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=single_line(f"{first.label}{unit}"), title_justify="left")
    table.add_column("for")
    unbiased = any(row.number.reference == UNBIASED and row.number.neutral is not None for row in rows)
    corrected = is_corrected([row.estimate for row in rows])
    middle = [*(["corrected"] if corrected else []), *(["unbiased"] if unbiased else [])]
    for name in ("value", "interval", *middle, "n"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for row in rows:
        table.add_row(*_cells(row, corrected=corrected, unbiased=unbiased))
    return table


def _cells(row: Row, *, corrected: bool, unbiased: bool) -> tuple[str, ...]:
    number = row.number
    expected = (number.expected,) if unbiased else ()
    beside = (corrected_cell(row.estimate),) if corrected else ()
    count = f"{number.n:,}" if number.n else UNDEFINED
    return (row.about or "all", number.bare, number.spread, *beside, *expected, count, row.verdict)
