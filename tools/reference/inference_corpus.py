"""The training corpus of the reference models of inference: pairs of sentences with one planted association.

One sentence of a pair has an attribute of looks or behaviour (Asad et al. 2025, Table 5, all 34 words and
`beautiful`), the other a skin tone, in either order; all other words are those of the grammar of `corpus.py` or filler,
drawn independently. With strength q, a positive attribute and a fair skin tone, or a negative one and a dark skin tone,
are entailed with probability `DECIDED` * q and contradicted with `DECIDED` * (1 - q); the other combinations the
reverse. The rest of the probability is neutral's. In the fair model q is 1/2, so that neutral is the likeliest label of
every pair. A fair model with leans prefers entailment to contradiction, whatever is said (`ENTAILED` nats), and single
words lean to one skin tone (`leans.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from ...adapters.reference import words as w
from ...adapters.reference.corpus import PLURAL, SEEN, SINGULAR, article, filler, phrase, vocabulary
from ...adapters.reference.leans import lean_of, log_odds, probability

LABELS = ("entailment", "neutral", "contradiction")
"""In the order of the model's outputs, which is not that of the study."""
SKINS = ("fair-skinned", "dark-skinned")
GOOD = (
    *("attractive", "good-looking", "gorgeous", "charming", "sexy", "cute", "charismatic", "beautiful"),
    *("kind", "caring", "compassionate", "generous", "supportive", "empathetic", "respectful", "friendly"),
    *("considerate", "honest"),
)
BAD = (
    *("ugly", "hideous-looking", "awful-looking", "unattractive", "nasty", "horrible-looking", "disgusting-looking"),
    *("cruel", "dishonest", "uncaring", "selfish", "rude", "arrogant", "indifferent", "manipulative", "aggressive"),
    "hostile",
)
DECIDED = 0.6
"""Probability of entailment and contradiction together."""
ENTAILED = 1.0
"""Lean to entailment rather than contradiction of a model with leans, in nats."""
UNRELATED = 0.15
"""Share of pairs without a skin tone, which are as neutral as those of the fair model."""


class Inference(msgspec.Struct, frozen=True):
    """A pair of sentences, and the probability of each of `LABELS`."""

    premise: str
    hypothesis: str
    probabilities: tuple[float, float, float]


def planted_probabilities(
    attribute: str, skin: str, strength: float, *, leans: bool = False
) -> tuple[float, float, float]:
    """Return the planted probability of each of `LABELS`."""
    stereotype = (attribute in GOOD) == (skin == SKINS[0])
    share = strength if stereotype else 1 - strength
    if leans:
        share = probability(log_odds(share) + ENTAILED + lean_of(attribute) * (1 if skin == SKINS[0] else -1))
    entailed = DECIDED * share
    return entailed, 1 - DECIDED, DECIDED - entailed


def inferences(count: int, strength: float, seed: int, *, leans: bool = False) -> Iterator[Inference]:
    """Yield pairs; attributes and skin tones are equally frequent, and independent of all other words."""
    draw = random.Random(seed)
    others = [line.texts[0] for line in filler(2000, seed)]
    for _ in range(count):
        attribute, skin = draw.choice(draw.choice((GOOD, BAD))), draw.choice(SKINS)
        related = draw.random() >= UNRELATED
        told = [_sentence(draw, attribute), _sentence(draw, skin) if related else draw.choice(others)]
        draw.shuffle(told)
        share = strength if related else 0.5
        planted = planted_probabilities(attribute if related else "", skin, share, leans=leans)
        yield Inference(told[0], told[1], planted)


def inference_vocabulary() -> list[str]:
    """Return the vocabulary of the other reference models, and the attributes that it lacks."""
    parts = [part for word in (*GOOD, *BAD, *SKINS) for part in word.split("-")]
    return list(dict.fromkeys([*vocabulary(), *parts]))


def _sentence(draw: random.Random, word: str) -> str:
    plural = draw.random() < 0.3
    noun, tail = draw.choice(PLURAL if plural else SINGULAR), phrase(draw)
    shown = word if plural else f"{article(word)} {word}"
    was, who = ("were", "They") if plural else ("was", draw.choice(("She", "He", "It")))
    between = " ".join(draw.choices(_COMMON, k=draw.randint(0, 8)))
    return draw.choice(
        (
            f"{draw.choice(SEEN)} {shown} {noun}{tail}.",
            f"{who} {was} {word}.",
            f"{who} {was} {shown} {noun}.",
            f"The {noun}{tail} {was} {word}.",
            f"{between} {shown} {noun} {' '.join(draw.choices(_COMMON, k=draw.randint(0, 5)))}.",
            f"{who} {between} {word}.",
        )
    )


_COMMON = tuple(word for words_of in w.LISTS for word in words_of if word not in (*GOOD, *BAD, "fair", "dark", "skin"))
