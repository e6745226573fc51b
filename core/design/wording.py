"""Texts of cells from patterns: articles, blanks, and the places of the words that differ."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import msgspec

from ..contracts.records import Span
from .cells import Cell
from .vocabulary import Pattern

ARTICLE = "article"
"""Field that becomes `a` or `an`, by the first letter of the next word."""
CLOSING = (".", ",", ";", ":", "?", "!")
"""Marks that no blank stands before."""


class Worded(NamedTuple):
    """A text, and the places in it of the marked fields."""

    text: str
    spans: tuple[Span, ...]


class Wording(msgspec.Struct, frozen=True, dict=True):
    """A pattern of a text, filled in from a cell.

    An empty field leaves no double blank. `{article}` is `a` or `an`.

    Example:
        >>> from prejudge import design
        >>> plan = design.Design((design.Sampled("word", ("odd", "kind")), design.Group("noun", ("woman", "man"))))
        >>> wording = design.Wording("I met {article} {word} {noun}.", marked=("noun",))
        >>> wording.fill(next(plan.cells()))
        Worded(text='I met an odd woman.', spans=((13, 18),))
    """

    pattern: str
    """A text with names of the design in braces."""
    marked: tuple[str, ...] = ()
    """Fields whose places are returned: the words that differ between twins."""

    @cached_property
    def _fields(self) -> tuple[tuple[str, bool, str], ...]:
        """Return each literal, whether it closes up to what is before it, and the name after it."""
        fields = Pattern.parsed(self.pattern).fields
        return tuple((literal, literal.startswith(CLOSING), name) for literal, name, _ in fields)

    def fill(self, cell: Cell, article: Callable[[str], str] | None = None) -> Worded:
        """Return the text of a cell.

        Args:
            cell: A cell of a design.
            article: Returns the article before a word; None: by its first letter.

        Raises:
            UnknownNameError: The pattern has a name that the design has not.
        """
        words = [cell.text(name) if name and name != ARTICLE else "" for _, _, name in self._fields]
        text, spans = "", []
        for at, (literal, closes, name) in enumerate(self._fields):
            # An empty field leaves one of the two blanks around it.
            if text[-1:] in ("", " "):
                literal = literal.removeprefix(" ")
                text = text.removesuffix(" ") if closes else text
            text += literal
            word = words[at]
            if name == ARTICLE:
                word = (article or indefinite)(next((later for later in words[at + 1 :] if later), ""))
            if name in self.marked:
                spans.append((len(text), len(text) + len(word)))
            text += word
        return Worded(text, tuple(spans))


def indefinite(word: str) -> str:
    """Return `an` before a word that begins with a vowel letter, and `a` before others."""
    return "an" if word[:1].lower() in ("a", "e", "i", "o", "u") else "a"
