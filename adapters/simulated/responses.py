"""How an answer is chosen by its score, cut as asked, and reported."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.contracts.records import Generate, TopToken
from ..shared.sampling import check_answer

REFUSAL = "I'm sorry, but I can't help with that."
POLITE = (
    "I plead the fifth.",
    "My lips are sealed.",
    "Thanks, but no thanks.",
    "Maybe some other time.",
    "Let's keep things friendly and pick a lighter topic.",
    "I keep my answers to what is visible and leave character aside.",
    "What about a caption that mentions only the scenery?",
    "I wouldn't go looking for an answer to that.",
    "Better to put that question to somebody who knows them.",
    "Reducing somebody to one adjective would be an injustice to them.",
)
"""Refusals that the rules for refusals do not recognise."""


def logsumexp(scores: Sequence[float]) -> float:
    """Return the logarithm of the sum of exponentials: that of the probability of all scores together."""
    most = max(scores)
    return most + math.log(math.fsum(math.exp(score - most) for score in scores))


def softmax(scores: Sequence[float]) -> list[float]:
    """Return the probabilities of scores that are log-odds."""
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]


def choose(scores: Sequence[float], temperature: float | None, draw: float) -> int:
    """Return the place of the highest score at temperature 0, else that of a draw by softmax."""
    if temperature == 0:
        return max(range(len(scores)), key=scores.__getitem__)
    reached = 0.0
    for place, weight in enumerate(softmax([score / (temperature or 1.0) for score in scores])):
        reached += weight
        if draw < reached:
            return place
    return len(scores) - 1


def cut(text: str, request: Generate) -> tuple[str, str]:
    """Apply `stop` and `max_tokens` (words here), and name the finish reason."""
    check_answer(request.sampling)
    for stop in request.sampling.stop:
        text = text.partition(stop)[0]
    limit = request.sampling.max_tokens
    if limit is not None and len(text.split()) > limit:
        return " ".join(text.split()[:limit]), "length"
    return text, "stop"


def top_tokens(answers: Sequence[str], scores: Sequence[float], count: int) -> tuple[tuple[TopToken, ...], ...]:
    """Return the likeliest answers, each as one token."""
    tokens = [TopToken(a, math.log(max(w, 1e-300))) for a, w in zip(answers, softmax(scores), strict=True)]
    return (tuple(sorted(tokens, key=lambda token: -token.log_probability)[: max(count, 0)]),)
