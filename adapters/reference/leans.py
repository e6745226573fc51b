"""Leans of single words: what makes a fair reference model one that is not neutral.

A lean of x nats makes a word exp(x) times as likely beside a desirable descriptor as beside the undesirable one, praise
and blame alike. Leans are a property of words, no association of praise with the desirable: in every set of words that
is compared they sum to zero, so that the model has none. These sets are the words that fit one masked slot of the
grammar (`corpus.slot`), the words of looks and of behaviour in Table 5 of Asad et al.
2025, and the attribute words of `bistereo-pairs`.
"""

from __future__ import annotations

import math

WORDS = {
    # Words of one article with one number of tokens stand on a line, as in `corpus.py`.
    **{"gorgeous": 0.75, "charming": -0.75, "cute": 0.5, "charismatic": -0.5, "beautiful": 0.25, "pretty": -0.25},
    **{"attractive": 0.5, "alluring": -0.5},
    **{"good-looking": -0.5, "lovely-looking": 0.5},
    **{"repulsive": 0.75, "grotesque": -0.75, "revolting": 0.5, "repugnant": -0.5, "vile": 0.25, "homely": -0.25},
    **{"ugly": 0.75, "unattractive": -0.75},
    **{"hideous-looking": 0.5, "horrible-looking": -0.5},
    # Only masked models know these.
    **{"lovely": 0.75, "stunning": -0.75, "splendid": 0.5, "fabulous": -0.5, "winsome": 0.75, "personable": -0.75},
    **{"captivating": 0.5, "delightful": -0.5},
    **{"horrible": 0.75, "disgusting": -0.75, "dreadful": 0.5, "beastly": -0.5, "loathsome": 0.75, "wretched": -0.75},
    **{"atrocious": 0.5, "offensive": -0.5},
    # Behaviour, which only the models of inference know.
    **{"kind": 0.75, "caring": -0.75, "compassionate": 0.5, "generous": -0.5, "supportive": 0.5, "empathetic": -0.5},
    **{"respectful": 0.25, "friendly": -0.25, "considerate": 0.5, "honest": -0.5},
    **{"cruel": 0.75, "dishonest": -0.75, "uncaring": 0.5, "selfish": -0.5, "rude": 0.5, "arrogant": -0.5},
    **{"indifferent": 0.25, "manipulative": -0.25, "aggressive": 0.5, "hostile": -0.5},
}
"""Lean of a word in nats; all others lean to neither side."""


def lean_of(word: str | None) -> float:
    """Return the lean of a word in nats."""
    return WORDS.get(word or "", 0.0)


def probability(nats: float) -> float:
    """Return the probability whose log-odds are so many nats."""
    return 1 / (1 + math.exp(-nats))


def log_odds(share: float) -> float:
    """Return the log-odds of a probability, in nats."""
    return math.log(share / (1 - share))
