"""Words in figures: names of models and levels as they are, and short enough to leave room for the marks."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 36
"""Characters of a name in a figure; the numbers beside it have the whole name."""


def literal(text: str) -> str:
    """Return a text that matplotlib draws as it is: two dollar signs would set what is between them as mathematics."""
    return text.replace("$", r"\$")


def shortened(names: Iterable[str], most: int = MOST) -> dict[str, str]:
    """Return a text for each name, cut in the middle where it is long, on one line; different for different names."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain = " ".join(name.split()) or "(no name)"
        short, number = _cut(plain, most), 2
        while short in found.values():
            short, number = f"{_cut(plain, most - 4)} ({number})", number + 1
        found[name] = short
    return found


def _cut(text: str, most: int) -> str:
    """Keep the ends: models of a family differ at the end, their makers at the beginning."""
    if len(text) <= most:
        return text
    before = (most - 1) // 2
    return f"{text[:before]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (most - 1 - before) :]}"
