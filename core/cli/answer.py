"""The answer of a run on the terminal, in the order of the report."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..answer import Answer, Row
from ..answer.corrected import corrected_cell, is_corrected
from ..answer.records import UNBIASED
from ..contracts.words import UNDEFINED
from .outlet import single_line

SHORT = {"percentage points": "points"}
"""Shorter words for units, in a table."""


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
    if answer.rows:
        console.print(answer_table(answer))
    for note in answer.notes:
        console.print(note)
    console.print(f"Missing: {answer.missing}")
    if answer.mend:
        console.print(answer.mend)


def answer_table(answer: Answer) -> Table:
    """Return the numbers of the first screen as a table."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    told = any(row.about for row in answer.rows)
    for name in ("measure", *(["for"] if told else [])):
        table.add_column(name)
    unbiased = any(row.number.reference == UNBIASED for row in answer.rows)
    corrected = is_corrected([row.estimate for row in answer.rows])
    middle = [*(["corrected"] if corrected else []), *(["unbiased"] if unbiased else [])]
    for name in ("value", "interval", *middle, "n"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for row in answer.rows:
        table.add_row(*_cells(row, told=told, corrected=corrected, unbiased=unbiased))
    return table


def _cells(row: Row, *, told: bool, corrected: bool, unbiased: bool) -> tuple[str, ...]:
    number = row.number
    value = number.short.replace(number.unit, SHORT.get(number.unit, number.unit)) if number.unit else number.short
    about = (row.about or "all",) if told else ()
    expected = (number.expected,) if unbiased else ()
    beside = (corrected_cell(row.estimate),) if corrected else ()
    count = f"{number.n:,}" if number.n else UNDEFINED
    return (row.label, *about, value, number.spread, *beside, *expected, count, row.verdict)
