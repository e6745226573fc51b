"""The numbers behind the answers of `simulated`: what is planted, as a bias and as a nuisance."""

from __future__ import annotations

import msgspec


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A bias, and standard deviations of noise and of random effects, in nats."""

    strength: float
    noise: float
    spread: float
    word_spread: float
    group_spread: float
    item_spread: float
    face_spread: float
    prompt_spread: float
    correlation: float
    unequal: float
    analogy: float
    copying: float
    copying_other: float
    position_lean: float
    label_spread: float
    length_lean: float
    frequency_spread: float
    drift: float
    drift_after: int
    refusal_lean: float
    unreadable_share: float
    error_rate: float
    same_samples: bool
    reworded: bool
    misread_stereotype: float
    misread_opposite: float
    scenes: bool
    polite: bool
    refusal_rate: float
    dimension: int

    @property
    def leans(self) -> float:
        """Return the sum of the random effects' standard deviations, but for the templates'."""
        return self.word_spread + self.group_spread + self.item_spread + self.face_spread + self.prompt_spread

    @property
    def analogies(self) -> float:
        """Return the most that is planted in an end of an analogy."""
        return abs(self.analogy) / 2 + max(self.copying, self.copying_other)


NUISANCES = (
    *("word_spread", "group_spread", "item_spread", "face_spread", "prompt_spread"),
    *("correlation", "unequal"),
)
"""What is planted beside a template's lean, and is no bias."""
HABITS = (
    *("position_lean", "label_spread", "length_lean", "frequency_spread", "drift", "drift_after"),
    *("refusal_lean", "unreadable_share", "error_rate", "same_samples", "scenes", "polite"),
    *("reworded", "misread_stereotype", "misread_opposite"),
)
"""Habits, which are no bias either."""
ANALOGIES = ("analogy", "copying", "copying_other")
"""What is planted in analogies alone."""
