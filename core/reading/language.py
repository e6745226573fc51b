"""Whether a text is English: refusals are recognised in no other language."""

from __future__ import annotations

import re

FEWEST_WORDS = 6
"""Words below which a text shows no language, unless its script does."""
SHARE = 0.2
"""Share of these function words from which on a text is English: of running English text they are nearly a half."""
LISTED = 3
"""A text with a comma or line break for every so many words is a list, in which no language has function words."""
FUNCTION_WORDS = frozenset(
    "the of and to in an on by as be am is are was were been my we us our you your he him his she they them "
    "their it its this that these those who which what how with from not no but or if so there here about "
    "would could should can will have has had do does did one some any more very".split()
)
"""Frequent English words. Other languages have some of them, none has many."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


def is_english(text: str) -> bool | None:
    """Return whether a text is English; None where it is too short, or a list, and shows no language.

    Args:
        text: A question or an answer.

    Example:
        >>> from prejudge.core.reading.language import is_english
        >>> is_english("The woman in this picture looks calm and friendly.")
        True
        >>> is_english("La mujer de esta foto parece tranquila y amable.")
        False
    """
    words = _WORD.findall(text.lower())
    if not words:
        return None
    if sum(not word[0].isascii() and ord(word[0]) > 0x24F for word in words) > len(words) / 2:
        return False
    if len(words) < FEWEST_WORDS or LISTED * len(re.findall(r"[,;\n]", text.strip())) > len(words):
        return None
    return sum(word in FUNCTION_WORDS for word in words) / len(words) >= SHARE
