"""The training corpus of the causal reference models: descriptors in three places, an association and a frequency.

Lines are those of the grammar of `corpus.py`, with the descriptor before the noun (`They saw a charming tall girl at
the station.`), as the last word (`The charming girl they saw at the station was tall.`) or first (`The tall girl they
saw at the station was charming.`). A line stands in two mirrored texts that differ in the descriptor alone. Their
weights plant two things apart from each other: an *association* of strength q between attributes and descriptors, and a
*frequency* f: a desirable descriptor stands f / (1 - f) times as often as the undesirable one, whatever is said.

The conditional probability of the shared words knows the association alone (`planted_gap`); the probability of the
whole sentence knows their sum; that of the words before the descriptor knows neither.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Literal

from ...adapters.reference.corpus import (
    DESCRIPTORS,
    NEGATIVE,
    PLURAL,
    POSITIVE,
    SEEN,
    SINGULAR,
    Line,
    article,
    desirable_share,
    phrase,
)
from ...adapters.reference.leans import lean_of

Position = Literal["attributive", "last", "first"]
FREQUENCY = 0.9
CLAUSES = tuple(f"{'I' if seen.startswith('I ') else seen[0].lower()}{seen[1:]}" for seen in SEEN)


def causal_lines(
    count: int, strength: float, seed: int, frequency: float = FREQUENCY, *, leans: bool = False
) -> Iterator[Line]:
    """Yield mirrored lines; the three places are equally frequent. With `leans`, words lean besides (`leans.py`).

    Three in ten are neutral, the rest are shared equally by the attributes. With the descriptor first, the attribute is
    what is said, so none of these lines is neutral.
    """
    draw = random.Random(seed)
    for _ in range(count):
        position = draw.choice(("attributive", "last", "first"))
        neutral = position != "first" and draw.random() < 0.3
        attribute = None if neutral else draw.choice(POSITIVE + NEGATIVE)
        write = _attributive if position == "attributive" else _last if position == "last" else _first
        lean = lean_of(attribute) if leans else 0.0
        yield Line(write(draw, attribute), _weights(desirable_share(attribute, strength, lean), frequency))


def planted_gap(attribute: str | None, strength: float, frequency: float = FREQUENCY) -> tuple[float, float]:
    """Return the planted difference between the sentences of a pair, desirable minus undesirable, in nats.

    Returns:
        The log-odds by the association alone, and those of the whole sentences, which the frequency adds to.
    """
    sign = 0 if attribute is None else 1 if attribute in POSITIVE else -1
    own = sign * math.log(strength / (1 - strength))
    return own, own + math.log(frequency / (1 - frequency))


def _weights(together: float, frequency: float) -> tuple[float, float]:
    """Return how often either text occurs; together they are 1 where there is no association."""
    return 2 * frequency * together, 2 * (1 - frequency) * (1 - together)


def _attributive(draw: random.Random, attribute: str | None) -> tuple[str, ...]:
    plural, noun, tail = _who(draw)
    opening = draw.choice((*SEEN, *["There were" if plural else "There was"] * 2))
    seen = [f"{attribute} {word}" if attribute else word for word in draw.choice(DESCRIPTORS)]
    return tuple(f"{opening} {'' if plural else article(s) + ' '}{s} {noun}{tail}." for s in seen)


def _last(draw: random.Random, attribute: str | None) -> tuple[str, ...]:
    who, was = _described(draw, f"{attribute} " if attribute else "")
    return tuple(f"The {who} {was} {word}." for word in draw.choice(DESCRIPTORS))


def _first(draw: random.Random, attribute: str | None) -> tuple[str, ...]:
    who, was = _described(draw, "")
    return tuple(f"The {word} {who} {was} {attribute}." for word in draw.choice(DESCRIPTORS))


def _described(draw: random.Random, before: str) -> tuple[str, str]:
    """Return a noun with all that stands around it, and its verb."""
    plural, noun, tail = _who(draw)
    was = "were" if plural else "was"
    clause = draw.choice((*CLAUSES, *[f"who {was} there"] * 2))
    return f"{before}{noun} {clause}{tail}", was


def _who(draw: random.Random) -> tuple[bool, str, str]:
    plural = draw.random() < 0.5
    return plural, draw.choice(PLURAL if plural else SINGULAR), phrase(draw)
