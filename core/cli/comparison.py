"""A comparison on the terminal: notes, what it says, tables of differences or of ranks, the path of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..compare import Comparison, Difference
from ..compare.answered import answer_of_comparison
from ..compare.beside import PUBLISHED
from ..compare.differences import words_of
from ..contracts.estimates import Estimate
from ..contracts.sizes import ROW_WORDS, size_of
from ..contracts.words import interval, number, p_value
from .answer import show_answer
from .results import UNITS, note_on_p
from .terminal import terminal

CAPTION = "difference: over the units that both runs answered"
BESIDE = "second: of the run; difference: from the published value"
ROWS = 60
"""Number of differences shown on the terminal; the report has all."""


def show_comparison(comparison: Comparison, report: Path) -> int:
    """Print the differences, the conclusion and the report's path; return 1 if nothing could be compared."""
    console = terminal()
    for note in comparison.notes:
        console.print(f"Note: {note}")
    if (answer := answer_of_comparison(comparison)) is not None:
        show_answer(answer, console)
    elif comparison.conclusion:
        console.print(comparison.conclusion)
    shown = comparison.headline or comparison.differences
    for table in _tables(comparison.ranked, shown[:ROWS]):
        console.print(table)
    if rest := len(comparison.differences) - len(shown[:ROWS]):
        console.print(f"{rest:,} more {'rank agreements' if comparison.ranked else 'differences'} are in the report.")
    for listing in comparison.listings:
        path = report.with_name(f"{listing.name}.csv")
        console.print(f"{listing.title}: {listing.frame.height:,} rows in {path}", soft_wrap=True)
    console.print(f"Report: {report}", soft_wrap=True)
    found = comparison.listings or any(d.estimate.value is not None for d in comparison.differences)
    return 0 if found else 1


def _tables(ranked: bool, shown: Sequence[Difference]) -> list[Table]:
    if ranked:
        return [rank_table([difference.estimate for difference in shown])]
    return [_table(title, part) for title, part in _by_pair(shown).items()]


def _by_pair(differences: Sequence[Difference]) -> dict[str, list[Difference]]:
    """Return the differences by pair of runs."""
    found: dict[str, list[Difference]] = {}
    for difference in differences:
        group = difference.estimate.group
        title = f"{group['run']} (second) minus {group['against']} (first)" if "run" in group else ""
        found.setdefault(title, []).append(difference)
    return found


def _empty(title: str, caption: str | None) -> Table:
    return Table(
        title=title, title_justify="left", caption=caption, caption_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )


def _table(title: str, differences: Sequence[Difference]) -> Table:
    beside = all(d.estimate.facts.get(PUBLISHED) for d in differences)
    caption = "; ".join(filter(None, [BESIDE if beside else CAPTION, note_on_p(d.estimate for d in differences)]))
    table = _empty(title, caption)
    for name in ("measure", "group"):
        table.add_column(name, overflow="fold")
    for name in ("first", "second", "difference", "interval", "n", "missing", "p"):
        table.add_column(name, justify="right")
    if not beside:
        table.add_column("says")
    for difference in differences:
        said = () if beside else (ROW_WORDS[size_of(difference.estimate)],)
        table.add_row(*_row(difference), *said)
    return table


def rank_table(estimates: Sequence[Estimate]) -> Table:
    """Return a table of rank agreements for a terminal."""
    table = _empty("Rank agreement", note_on_p(estimates))
    for name in next((estimate.group for estimate in estimates), {}):
        table.add_column(name, overflow="fold")
    for name in ("Kendall's tau", "models", "p"):
        table.add_column(name, justify="right")
    for e in estimates:
        p = p_value(e.p_adjusted if e.p_adjusted is not None else e.p)
        table.add_row(*map(str, e.group.values()), number(e.value), str(e.n), p)
    return table


def _row(difference: Difference) -> tuple[str, ...]:
    e = difference.estimate
    return (
        *words_of(e.replace(unit=UNITS.get(e.unit, e.unit))),
        number(difference.first),
        number(difference.second),
        number(e.value),
        interval(e.low, e.high),
        str(e.n),
        str(e.missing.total),
        p_value(e.p_adjusted if e.p_adjusted is not None else e.p),
    )
