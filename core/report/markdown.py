"""Escape text for Markdown, so that texts of models and files create no markup.

Escaped text makes no markup, no link, no HTML and no table cell; where GitHub shows it, it also mentions nobody and
refers to no issue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .text import clean

_MARKUP = re.compile(r"[\\`*_\[\]#|~$^]")
_START = re.compile(r"^\d+(?=[.)](\s|$))|^(?=[-+](\s|$))|^(?=[-=][-=\s]*$)")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ENTITY = re.compile("[&<>]")
_APART = "\N{ZERO WIDTH SPACE}"
# GitHub finds mentions, issues, bare addresses and emoji after the page was made, where no backslash is left to see.
# Two digits are a part of a time: no emoji has such a name.
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=://)(?=\S)|(?<=www)(?=\.)|(?<=:)(?!\d\d\b)(?=[\w+-]+:)", re.I)


def escape(text: object) -> str:
    """Return any text as one line of words without meaning to Markdown."""
    words = " ".join(str(clean(str(text))).split())
    apart = _LINKED.sub(_APART, words)
    marked = _MARKUP.sub(r"\\\g<0>", _ENTITY.sub(lambda found: _ENTITIES[found.group()], apart))
    return _START.sub(r"\g<0>\\", marked)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], numeric: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table, escaped; the columns in `numeric` are set to the right."""
    rules = ["---:" if index in numeric else "---" for index in range(len(heads))]
    return [_row(map(escape, heads)), _row(rules), *(_row(map(escape, row)) for row in rows), ""]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
