"""Escape text for Markdown, so that texts of models and files create no markup.

Escaped text makes no markup, link, HTML or table cell; on GitHub it also makes no mention of a user or an issue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .text import clean

_MARKUP = re.compile(r"[\\`*_\[\]#|~$^]")
_BAR = re.compile(r"(?<!\\)\|")
_START = re.compile(r"^\d+(?=[.)](\s|$))|^(?=[-+](\s|$))|^(?=[-=][-=\s]*$)")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ENTITY = re.compile("[&<>]")
_APART = "\N{ZERO WIDTH SPACE}"
# GitHub searches for mentions, issues, addresses and emoji after rendering, when backslashes are gone.
# Two digits are part of a time: no emoji has such a name.
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=://)(?=\S)|(?<=www)(?=\.)|(?<=:)(?!\d\d\b)(?=[\w+-]+:)", re.I)


def escape(text: object) -> str:
    """Return any text as one line without markup."""
    words = " ".join(str(clean(str(text))).split())
    apart = _LINKED.sub(_APART, words)
    marked = _MARKUP.sub(r"\\\g<0>", _ENTITY.sub(lambda found: _ENTITIES[found.group()], apart))
    return _START.sub(r"\g<0>\\", marked)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], numeric: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table, escaped; the columns in `numeric` are right-aligned."""
    return [*marked_table([*map(escape, heads)], ([*map(escape, row)] for row in rows), numeric), ""]


def marked_table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table of which the cells are Markdown; only bars in them are escaped."""
    rules = ["---:" if index in numeric else "---" for index in range(len(heads))]
    return [_row(cells) for cells in (heads, rules, *rows)]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_BAR.sub(r"\\|", cell) for cell in cells) + " |"
