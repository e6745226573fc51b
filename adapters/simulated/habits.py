"""Habits of `simulated` that are no bias: preferences for places, labels, lengths and common words, and poor answering.

A habit acts alike on whatever is asked about whomever, so that a sound study finds no bias in a model that has only
habits. All amounts are in nats, but for shares of answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .choices import Choice
from .noise import LARGEST, Leans
from .planted import Planted

TYPICAL, STEP, REACH = 20, 10, 10
"""A text of `TYPICAL` characters does not lean for its length; one of `STEP` more does, up to `REACH` times."""
UNREADABLE = "It depends."
"""An answer that names none of the options."""
_WORD = re.compile(r"[\w'-]+")


class Habits:
    """The habits of one model; counts the requests it was asked, since a model may change in mid-run."""

    def __init__(self, planted: Planted, leans: Leans) -> None:
        """Take the amounts and the random effects."""
        self._planted, self._leans = planted, leans
        self._scored = bool(planted.length_lean or planted.frequency_spread)
        self.asked = 0

    @property
    def reach(self) -> float:
        """Return the most that habits add to a score."""
        planted = self._planted
        placed = abs(planted.position_lean) + LARGEST * planted.label_spread + abs(planted.drift)
        return placed + REACH * abs(planted.length_lean) + LARGEST * planted.frequency_spread

    @property
    def drift(self) -> float:
        """Return what has been added to scores since the model changed."""
        return self._planted.drift if self.asked > self._planted.drift_after else 0.0

    def option(self, choice: Choice, place: int) -> float:
        """Return the lean to a listed option at a place, counted from 0."""
        found = self.text(choice.text) + (self._planted.position_lean if place == 0 else 0.0)
        return found + self.label(choice.answer.removesuffix(choice.text))

    def label(self, label: str) -> float:
        """Return the lean to a label, whatever stands behind it."""
        if not self._planted.label_spread:
            return 0.0
        return self._planted.label_spread * self._leans.of("label", label.strip(" ().:[]").lower())

    def text(self, text: str) -> float:
        """Return the lean to a text for its length and for how common its words are."""
        return self.words(_WORD.findall(text), len(text.strip())) if self._scored else 0.0

    def words(self, words: Sequence[str], length: int | None = None) -> float:
        """Return the same of words that are scored; by default their length is that of all with blanks."""
        if not self._scored:
            return 0.0
        size = len(" ".join(words)) if length is None else length
        found = self._planted.length_lean * min(max((size - TYPICAL) / STEP, -REACH), REACH)
        if self._planted.frequency_spread:
            common = math.fsum(self._leans.of("common", word.lower()) for word in words)
            found += self._planted.frequency_spread * min(max(common, -LARGEST), LARGEST)
        return found

    def refusal_rate(self, described: int) -> float:
        """Return the share of refused answers to a prompt about a desirable (1) or undesirable (-1) group, or none."""
        return self._planted.refusal_rate + (self._planted.refusal_lean if described < 0 else 0.0)
