"""Texts with slots: which names stand in them, and what they become. A slot is a name in braces and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from ...core.contracts.errors import DataError

MOST_TEXT = 1 << 20
"""Characters of the longest prompt."""
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|\{|\}")
_NAME = re.compile(r"[^\W\d]\w*(?:[ -]\w+)*(?:\.[^\W\d]\w*(?:[ -]\w+)*)?")
_LOOP = re.compile(r"\{%|\{\{\s*[\w.]+\s*\}\}")


def slots_of(text: str) -> list[str]:
    """Return the names in braces."""
    return [match[1] for match in _TOKEN.finditer(text) if match[1] is not None]


def faults_of(text: str, names: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the slots of a text: what it has, and what would be accepted."""
    listed = ", ".join(f"{{{name}}}" for name in names)
    for match in _LOOP.finditer(text):
        yield f"{match[0]!r} is of another template language. Write slots: {listed}."
    for match in _TOKEN.finditer(text):
        if match[0] in ("{", "}"):
            yield f"a single {match[0]!r}. Write {match[0] * 2} for a brace, or a slot: {listed}."
        elif match[1] is not None and (not _NAME.fullmatch(match[1]) or "__" in match[1]):
            yield f"{match[0]!r} is no slot: only a name stands in braces, without calls, formats or loops: {listed}."
        elif match[1] is not None and match[1] not in names:
            yield f"the slot {match[0]!r} is unknown. There are: {listed}."


def fill(text: str, value: Callable[[str], str], names: Collection[str] | None = None) -> str:
    """Return a text with what stands in its slots.

    Args:
        text: The text.
        value: Returns what stands in a slot.
        names: Slots of a text from a table, whose other braces stay as they are; None: a text of the study.

    Raises:
        DataError: the text becomes longer than `MOST_TEXT`.
    """
    pieces, size, end = list[str](), len(text), 0
    for match in _TOKEN.finditer(text):
        if names is None or match[1] in names:
            word = value(match[1]) if match[1] is not None else match[0][:1]
            pieces += [text[end : match.start()], word]
            size += len(word)
            end = match.end()
        if size > MOST_TEXT:
            raise DataError(f"a prompt has more than {MOST_TEXT:,} characters.", code="folder.size")
    return "".join([*pieces, text[end:]])
