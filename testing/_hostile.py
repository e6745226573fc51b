"""Unusual answers by kind of request that a store can contain and on which a careless reader fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.contracts.records import (
    AnyResponse,
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    PseudoLikelihood,
    Request,
    TokenScores,
)

TEXTS = (
    "",
    " \n\t ",
    "\0",
    "I'm sorry, but I can't help with that.",
    "null",
    "0",
    "-1",
    "NaN",
    "{}",
    "[[[[",
    '{"answer": {"answer": null}}',
    '```json\n{"answer": 1}\n```',
    "(a) (b) (c) both, neither",
    "Option 1 Option 2 Option 3",
    "<script>alert(1)</script>",
    "{0} {name} %s %(x)s \\1 \\g<0>",
    "\N{RIGHT-TO-LEFT OVERRIDE}(a)\N{ZERO WIDTH SPACE}",
    "\N{GRINNING FACE}\N{COMBINING ACUTE ACCENT}" * 3,
    "ﬁ İ ß ǅ",
    "a" * 100_000,
    "(" * 5_000,
    "\n".join(f"{i}. item" for i in range(2_000)),
)
"""Texts that a model may write."""


def _score(log_probability: float, count: int) -> TokenScores:
    values = (log_probability / count,) * count if count else ()
    return TokenScores(log_probability=sum(values), count=count, values=values)


def _scores(request: Likelihood) -> list[AnyResponse]:
    n = len(request.continuations)
    return [
        Likelihoods(scores=(_score(-1.0, 2),) * n),
        Likelihoods(scores=(_score(0.0, 0),) * n),
        Likelihoods(scores=tuple(_score(-1e300 if i else 0.0, 1) for i in range(n))),
        Likelihoods(scores=()),
    ]


HOSTILE: dict[type[Request], Callable[[Any], Sequence[AnyResponse]]] = {
    Generate: lambda request: [Generation(text=text) for text in TEXTS],
    Likelihood: _scores,
    PseudoLikelihood: lambda request: [_score(0.0, 0), _score(-1e300, 1), _score(-0.0, 3)],
    Classify: lambda request: [
        Classification(probabilities={}),
        Classification(probabilities={"": 1.0}),
        Classification(probabilities={"LABEL_0": 0.5, "LABEL_1": 0.5}),
        Classification(probabilities={label: 0.0 for label in ("positive", "negative", "neutral")}),
        *(Classification(probabilities={}, text=text) for text in TEXTS),
    ],
    Embed: lambda request: [Embedding(vector=()), Embedding(vector=(0.0,) * 8), Embedding(vector=(1e300, -1e300))],
    Draw: lambda request: [Drawing(image=None), Drawing(image=""), Drawing(image="0" * 64)],
}
