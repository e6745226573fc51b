"""What the pages that are written from the code have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

WRITTEN = "<!-- Written by `make reference` from the code. Do not edit. -->"


def line(text: str) -> str:
    """Return a text as one line of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
