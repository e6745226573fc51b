"""The first screen of a report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from ..answer import Answer, Row
from ..answer.corrected import HEAD as CORRECTED
from ..answer.corrected import corrected_cell, is_corrected
from ..answer.records import EQUAL
from ..contracts.words import UNDEFINED
from .markdown import escape, table

HEADS = ("What was measured", "For", "Value", "Interval", CORRECTED, "Unbiased", "n", "Verdict")


def _kept(answer: Answer) -> frozenset[str]:
    """Return the columns that have content."""
    empty = {"For"} if not any(row.about for row in answer.rows) else set()
    empty |= {"Interval"} if all(row.number.low is None for row in answer.rows) else set()
    empty |= set() if is_corrected([row.estimate for row in answer.rows]) else {CORRECTED}
    empty |= {"Unbiased"} if all(row.number.neutral is None for row in answer.rows) else set()
    empty |= {"Unbiased"} if any(row.number.reference == EQUAL for row in answer.rows) else set()
    empty |= {"n"} if not any(row.number.n for row in answer.rows) else set()
    return frozenset(HEADS) - empty


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
