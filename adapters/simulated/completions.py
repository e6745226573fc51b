"""Sentences whose last word has only its first letter, and a planted association of some sentences with some words."""

from __future__ import annotations

import re
from typing import NamedTuple

from .choices import Choice
from .noise import Noise

_BEGUN = re.compile(
    r"^[ \t]*(?P<stem>\S[^\n]*?)(?:[ \t]+an?(?:/an)?)?[ \t]+(?P<letter>[a-z])_{2,}(?P<end>ing)?[ \t]*[.?!]?\s*\Z",
    re.I | re.M,
)
VOWELS, CONSONANTS = "aeiou", "bdgkmprtvz"
_WORD = re.compile(r"[\w/'-]+")
FRAME = frozenset(
    "a an the this these is are was be in general usually tends tend to someone who often person people say "
    "says that most you can see i know saw seems everyone word best describes we all call right now photo shows almost "
    "every my experience as think unlike others it turns out yesterday met friend told me after while notice at first "
    "sight".split()
)
"""Words of the sentences about people, in every wording, that do not say whom they are about."""
WORDS = 12
"""Number of words for each letter that may complete a sentence; they are invented, so that no dictionary merges two."""
SHARE = 0.5
"""Share of the sentences with a letter that have an associated word."""


class Begun(NamedTuple):
    """A sentence to be completed."""

    stem: str
    """The text before the word, without an article."""
    letter: str
    end: str
    """The required ending of the word."""

    @property
    def people(self) -> str:
        """Return the words of the stem that are not of a frame: whom the sentence is about, however it is put."""
        return " ".join(word for word in _WORD.findall(self.stem.lower()) if word not in FRAME)


def begun(prompt: str) -> Begun | None:
    """Return the sentence that a prompt ends with, if its last word is begun, as in `This person is a t_____`."""
    if "__" not in prompt:  # the pattern takes long to find that a long prompt has no begun word
        return None
    match = _BEGUN.search(prompt)
    return None if match is None else Begun(match["stem"], match["letter"].lower(), (match["end"] or "").lower())


class Completions:
    """Words by letter, and the one associated with a sentence."""

    def __init__(self, noise: Noise, strength: float, spread: float, own: float = 0.0) -> None:
        """Take the noise, and in nats: `strength` of an association, `spread` of words, `own` noise of each prompt."""
        self._noise, self._strength, self._spread, self._own = noise, strength, spread, own

    def choices(self, sentence: Begun) -> list[Choice]:
        """Return the words that may complete a sentence."""
        return [Choice(word, word) for word in words_of(sentence)]

    def scores(self, sentence: Begun, where: str = "") -> list[float]:
        """Return the score of each: how common it is, the noise of the prompt, and `strength` where planted.

        `where` names what has noise of its own; empty: the sentence.
        """
        own, place = self.planted(sentence), where or sentence.stem
        return [
            self._spread * self._noise.normal("common", word)
            + self._own * self._noise.normal("in this prompt", f"{place}|{word}")
            + self._strength * (word == own)
            for word in words_of(sentence)
        ]

    def planted(self, sentence: Begun) -> str | None:
        """Return the word associated with a sentence, or None."""
        name = f"{sentence.people}|{sentence.letter}"
        if self._noise.uniform("has a word", name) >= SHARE:
            return None
        return words_of(sentence)[int(self._noise.uniform("its word", name) * WORDS)]


def words_of(sentence: Begun) -> list[str]:
    """Return the words of a letter, with the ending that the sentence asks for."""
    syllables = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]
    inner = "o" if sentence.letter not in VOWELS else ""
    return [
        f"{sentence.letter}{inner}{syllables[7 * n % 50]}{syllables[11 * n % 50]}k{sentence.end}"
        for n in range(1, WORDS + 1)
    ]
