"""A comparison as Markdown, for a pull request or an issue: what it says, then the differences of the main measures."""

from __future__ import annotations

from ..contracts.sizes import SHORT_WORDS, state_of_difference
from ..contracts.words import interval, number, p_value
from ..report.first import answer_markdown
from ..report.markdown import escape, table
from .answered import answer_of_comparison
from .beside import PUBLISHED
from .differences import Difference, words_of
from .records import Comparison

HEADS = ("measure", "group", "run", "against", "value", "of the other", "difference", "interval", "adjusted p", "says")
NUMERIC = (4, 5, 6, 7, 8)
ROWS = 60
"""Most differences of the table; the files beside it have all."""


def markdown(comparison: Comparison) -> str:
    """Return the page; nothing that a model or a file said makes markup in it."""
    shown = comparison.headline or comparison.differences
    answer = answer_of_comparison(comparison)
    told = [answer_markdown(answer)] if answer is not None else []
    told += [f"{escape(text)}\n" for text in [comparison.conclusion] if text]
    lines = [f"# {escape(comparison.title)}", "", *told]
    lines += [f"- {escape(note)}" for note in comparison.notes]
    if not comparison.ranked and shown:
        lines += ["", *table(HEADS, map(_row, shown[:ROWS]), NUMERIC)]
        rest = len(comparison.differences) - len(shown[:ROWS])
        lines += [f"{rest:,} more differences are in `differences.csv`."] if rest else []
    return "\n".join(lines).rstrip() + "\n"


def _row(difference: Difference) -> tuple[str, ...]:
    e = difference.estimate
    measure, group = words_of(e)
    return (
        measure,
        group,
        str(e.group.get("run", "")),
        str(e.group.get("against", "")),
        number(difference.second),
        number(difference.first),
        number(e.value),
        interval(e.low, e.high),
        p_value(e.p_adjusted if e.p_adjusted is not None else e.p),
        "printed value, not tested" if e.facts.get(PUBLISHED) else SHORT_WORDS[state_of_difference(e)],
    )
