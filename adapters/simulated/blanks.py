"""The words whose association is planted in sentences with a BLANK, which `simulated` completes from listed options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.records import Prompt
from .words import words_of

BLANK = "BLANK"
"""What a sentence has in the place of the words that are chosen; no other sentence is touched."""
NAMES = ("desirable", "undesirable", "positive", "negative")
VARYING = (
    *("a", "an", "he", "she", "they", "him", "her", "them", "his", "their", "is", "are", "was", "were"),
    *("man", "woman", "person", "men", "women", "people", "male", "female"),
)
"""Words that vary within a template, by pronoun and by what follows an article."""


def read_blanks(path: str) -> dict[str, tuple[str, ...]]:
    """Read who is described (`stimuli`) and how (`attributes`), domain by domain, as the four lists of `Lists`.

    Each table of the TOML file is a domain: `stimuli_pairs` and `attributes` are lists of a positive and a negative
    word, `stimuli` has ranges of whole numbers (`positive = [25, 35]`). Anything else in it is neutral.

    Raises:
        ModelLoadError: the file cannot be read, or holds no pairs.
    """
    try:
        domains = tomllib.loads(Path(path).read_text("utf-8"))
        pairs = [pair for table in domains.values() for pair in _pairs(table)]
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise ModelLoadError(
            f"cannot read pairs of words from blanks = {path!r}: {error}.", code="model.option"
        ) from None
    if not pairs:
        raise ModelLoadError(
            f"blanks = {path!r} has no pairs: give `stimuli_pairs` and `attributes` per domain.", code="model.option"
        )
    return {name: tuple(dict.fromkeys(word for kind, word in pairs if kind == name)) for name in NAMES}


def _pairs(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each word of a domain with the list it belongs to."""
    for name, kinds in (("stimuli_pairs", NAMES[:2]), ("attributes", NAMES[2:])):
        for pair in table.get(name, ()):
            if not isinstance(pair, str):
                yield from zip(kinds, map(str, pair), strict=True)
    for kind, polarity in zip(NAMES[:2], ("positive", "negative"), strict=True):
        if "stimuli" in table:
            first, last = table["stimuli"][polarity]
            yield from ((kind, str(number)) for number in range(first, last + 1))


def has_blank(prompt: Prompt) -> bool:
    """Return whether a sentence with a BLANK stands in a prompt."""
    return BLANK in words_of(prompt)
