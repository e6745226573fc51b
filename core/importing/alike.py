"""Texts that are the same apart from how they were typed: white space, case, kinds of quotes, final punctuation."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

KINDS = str.maketrans(dict.fromkeys('‘’‚‛`´′"“”„‟″«»', "'") | dict.fromkeys("‐‑‒–—―−", "-"))
"""Quotes of all kinds as one, and dashes as one."""
WHOLE = re.compile(r"([+-]?\d+)\.0+")
"""A whole number, as a table of decimal numbers writes it."""
UNSEEN = re.compile(r"[\s_\u00ad\u200b-\u200f\u2060\ufeff]+")
END = ".,;:!?'"
CLAUSES, SHOWN = 3, 60
"""Columns of a row that a message describes, and characters of a value in it."""
AROUND = 24
"""Characters shown on both sides of a difference."""


def folded(cell: Any) -> str | None:
    """Return a cell as text that is equal for cells that differ only in how they were typed; None if it is blank."""
    if cell is None or cell == "":
        return None
    text = unicodedata.normalize("NFKC", str(cell).translate(KINDS)).casefold()
    text = UNSEEN.sub("", text).strip(END)
    whole = WHOLE.fullmatch(text)
    return (whole[1] if whole else text) or None


def differing(said: Any, own: Any) -> str:
    """Describe where two cells differ: both whole where they are short, and only around the first difference if not."""
    one, two = str(said), str(own)
    if max(len(one), len(two)) > 3 * AROUND:
        start = next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
        one, two = (_around(text, start) for text in (one, two))
    return f"{one!r}, and {two!r} in the data"


def shown(cell: Any) -> str:
    """Return a cell as a message shows it, cut where it is long."""
    text = repr(cell)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def listed(clauses: Iterable[str]) -> str:
    """Return the first clauses, and how many more there are: a row may differ in many columns."""
    every = list(clauses)
    more = f"; and {len(every) - CLAUSES} more" if len(every) > CLAUSES else ""
    return "; ".join(every[:CLAUSES]) + more


def _around(text: str, at: int) -> str:
    low, high = max(0, at - AROUND), at + AROUND
    return f"{'…' if low else ''}{text[low:high]}{'…' if high < len(text) else ''}"


def likeness(one: Any, two: Any) -> float:
    """Return how alike two cells are, from 0 to 1."""
    a, b = folded(one) or "", folded(two) or ""
    if a == b:
        return 1.0
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() > 0.5 else matcher.quick_ratio() / 2
