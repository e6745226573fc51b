"""A comparison on the terminal: notes, what it says, tables of differences or of ranks, the path of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..compare import Comparison, Difference
from ..compare.answered import answer_of_comparison
from ..compare.beside import PUBLISHED
from ..compare.beside import in_words as beside_in_words
from ..compare.differences import words_of
from ..contracts.estimates import Estimate
from ..contracts.words import UNDEFINED, decimals_for, number, p_value, settled
from .answer import show_answer
from .results import UNITS, note_on_p
from .terminal import terminal

CAPTION = "difference: over the units that both runs answered"
BESIDE = "second: of the run; difference: from the published value"
RANKS, ROWS = 60, 6
"""Rank agreements and differences that are shown on the terminal; the report has all."""


def show_comparison(comparison: Comparison, report: Path) -> int:
    """Print the answer in the order of the report, and the report's path; return 1 if nothing could be compared.

    Differences from published values, and those of measures that have no test, stand in a short table.
    """
    console = terminal()
    for note in comparison.notes:
        console.print(f"Note: {note}")
    shown = list(comparison.headline or comparison.differences)
    if (answer := answer_of_comparison(comparison)) is not None:
        show_answer(answer, console)
        shown = [one for one in shown if PUBLISHED in one.estimate.facts]
        said = beside_in_words(shown)
    else:
        said = comparison.conclusion
    if said:
        console.print(said)
    most = RANKS if comparison.ranked else ROWS
    for table in _tables(comparison.ranked, shown[:most]):
        console.print(table)
    if rest := len(shown) - len(shown[:most]):
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
    table = _empty(title, BESIDE if all(d.estimate.facts.get(PUBLISHED) for d in differences) else CAPTION)
    for name in ("measure", "for"):
        table.add_column(name, overflow="fold")
    for name in ("first", "second", "difference", "interval"):
        table.add_column(name, justify="right")
    for difference in differences:
        table.add_row(*_row(difference))
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
    measure, about = words_of(e.replace(unit=UNITS.get(e.unit, e.unit)))
    numbers = [difference.first, difference.second, e.value, e.low, e.high]
    decimals = decimals_for(numbers)
    first, second, value, low, high = (number(settled(one, 100), decimals) for one in numbers)
    return measure, about, first, second, value, UNDEFINED if e.low is None else f"{low} to {high}"
