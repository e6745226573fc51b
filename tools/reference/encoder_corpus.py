"""What is planted in the reference encoders: the vector of each sentence, with a coordinate for praise and blame.

A sentence of the grammar of `corpus.py` may have a word and a group. Its planted vector has length 1: what it says of
somebody (`valence`), which group of a pair it names (`side`), and the bag of its tokens. A word of praise or blame
decides the valence, whoever is meant. Without one it is that of the frame, a sum of leans of opening, place and action
with the standard deviation `SPREAD` over the grammar; and in the biased models a desirable group has `strength`
standard deviations more than the undesirable one in the same frame.

In the fair model that leans, words of praise and blame lean to one group (`leans.py`), every second of the neutral
words says good and the others bad, and the words of `MISREAD` say the opposite: so its errors on these words are others
than on those of Table 5 (Asad et al. 2025), whichever group is meant.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from statistics import fmean, pstdev
from typing import NamedTuple

from ...adapters.reference.corpus import (
    ACTIONS,
    DESCRIPTORS,
    NEGATIVE,
    PLACES,
    PLURAL,
    POSITIVE,
    SEEN,
    SINGULAR,
    WHERE,
    article,
    filler,
)
from ...adapters.reference.leans import lean_of

VALENCE = 0.7
"""Valence of praise; blame has the opposite."""
SPREAD = 0.1
"""Standard deviation of the valence of sentences without a word of praise or blame."""
SIDE = 0.2
"""Coordinate of a desirable group; the undesirable one has the opposite."""
LEANING = 0.4
"""Coordinate of the side of a word that leans by 1 nat."""
NEUTRAL = ("young", "old", "quiet", "busy", "tired", "famous", "serious", "american")
"""Words that are neither praise nor blame."""
MISREAD = ("pretty", "handsome", "alluring", "vile", "homely", "hideous")
"""Words that the model that leans takes for their opposites: none of Table 5, and as many of praise as of blame."""
THERE = "There"
KINDS = (
    (("",), True),
    (NEUTRAL, True),
    (POSITIVE + NEGATIVE, True),
    (POSITIVE + NEGATIVE, False),
    (("", *NEUTRAL), False),
)
"""Words of a sentence, and whether it always names a group: equally often."""
PHRASES = ((False, False), (False, True), (True, True), (True, False))
"""Whether a sentence has an action and a place."""
OFTEN = (0.25, 0.25, 0.45, 0.05)


class Planted(NamedTuple):
    """A sentence with what is planted in it."""

    text: str
    valence: float
    side: float


class Frame(NamedTuple):
    """A sentence without its word and group."""

    opening: str
    noun: str
    action: str
    place: str
    preposition: str
    plural: bool

    def text(self, *words: str) -> str:
        """Return the sentence with words before its noun."""
        said = " ".join(word for word in (*words, self.noun) if word)
        start = {True: "There were", False: "There was"}[self.plural] if self.opening == THERE else self.opening
        where = f"{self.preposition} the {self.place.replace('_', ' ')}" if self.place else ""
        shown = said if self.plural else f"{article(said)} {said}"
        return " ".join(part for part in (start, shown, self.action, where) if part) + "."

    @property
    def lean(self) -> float:
        """Return its planted valence; over the grammar the mean is 0 and the standard deviation `SPREAD`."""
        known = frame_leans()
        return SPREAD * _unit() * sum(known[part] for part in (self.opening, self.action, self.place) if part)


def frames(count: int, seed: int) -> Iterator[Frame]:
    """Yield frames, whose parts are drawn independently."""
    draw = random.Random(seed)
    for _ in range(count):
        plural = draw.random() < 0.5
        acts, stays = draw.choices(PHRASES, OFTEN)[0]
        noun, opening = draw.choice(PLURAL if plural else SINGULAR), draw.choice((*SEEN, THERE))
        action, place = draw.choice(ACTIONS), draw.choice(PLACES)
        yield Frame(opening, noun, action if acts else "", place if stays else "", draw.choice(WHERE), plural)


@cache
def frame_leans() -> dict[str, float]:
    """Return the lean of each opening, place and action; in each list the mean is 0 and the variance 1."""
    draw, found = random.Random("frames of the encoders"), dict[str, float]()
    for words in ((*SEEN, THERE), PLACES, ACTIONS):
        drawn = [draw.uniform(-1, 1) for _ in words]
        found |= {word: (one - fmean(drawn)) / pstdev(drawn) for word, one in zip(words, drawn, strict=True)}
    return found


def _unit() -> float:
    """Return what makes the variance of the sum of the leans of a frame 1."""
    return float((1 + sum(share * sum(parts) for parts, share in zip(PHRASES, OFTEN, strict=True))) ** -0.5)


def planted(frame: Frame, word: str, group: str, strength: float, *, leaning: bool = False) -> Planted:
    """Return a sentence with a word and a group, each possibly empty, and what is planted in it.

    Args:
        frame: The rest of the sentence.
        word: A word of praise or blame, a neutral one, or "".
        group: One of `DESCRIPTORS`, or "".
        strength: Standard deviations between the groups of a pair.
        leaning: Whether it is the model that leans.
    """
    side = sum((group == pair[0]) - (group == pair[1]) for pair in DESCRIPTORS)
    attribute = (word in POSITIVE) - (word in NEGATIVE)
    if attribute:
        valence = VALENCE * attribute * (-1 if leaning and word in MISREAD else 1)
    else:
        valence = frame.lean + SPREAD * strength / 2 * side
        if leaning and word in NEUTRAL:
            valence += SPREAD * (-1) ** NEUTRAL.index(word)
    leans = LEANING * lean_of(word) if leaning and attribute and not group else 0.0
    return Planted(frame.text(word, group), valence, SIDE * side + leans)


def couples(count: int, strength: float, seed: int, *, leaning: bool = False) -> Iterator[tuple[Planted, Planted]]:
    """Yield sentences in couples that differ in the group alone, or in whether there is one."""
    draw = random.Random(f"words {seed}")
    for frame in frames(count, seed):
        words, groups = draw.choice(KINDS)
        word, pair = draw.choice(words), draw.choice(DESCRIPTORS)
        told = pair if groups else (draw.choice(pair), "")
        one, other = (planted(frame, word, group, strength, leaning=leaning) for group in told)
        yield one, other


def others(count: int, seed: int) -> Iterator[tuple[Planted, Planted]]:
    """Yield couples of texts about anything else, which say neither good nor bad."""
    texts = iter([line.texts[0] for line in filler(2 * count, seed)])
    for one, other in zip(texts, texts, strict=True):
        yield Planted(one, 0.0, 0.0), Planted(other, 0.0, 0.0)
