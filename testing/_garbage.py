"""Invalid requests by kind, and the record that answers each kind of request."""

from __future__ import annotations

from typing import Any

from ..core.contracts.records import (
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    PseudoLikelihood,
    Request,
    Sampling,
    Text,
    TokenScores,
)

RESPONSES: dict[type[Request], type[Any]] = {
    Generate: Generation,
    Likelihood: Likelihoods,
    PseudoLikelihood: TokenScores,
    Classify: Classification,
    Embed: Embedding,
    Draw: Drawing,
}


def _user(*parts: Text | Image) -> tuple[Message, ...]:
    return (Message("user", parts),)


GARBAGE: dict[type[Request], tuple[Any, ...]] = {
    Generate: (
        Generate(messages=()),
        Generate(messages=_user()),
        Generate(messages=_user(Image("no such image"))),
        Generate(messages=_user(Text("a")), sampling=Sampling(max_tokens=-1, temperature=-1.0)),
    ),
    Likelihood: (
        Likelihood(prompt="", continuations=()),
        Likelihood(prompt=(), continuations=(" a",)),
        Likelihood(prompt="a", continuations=("",)),
    ),
    PseudoLikelihood: (
        PseudoLikelihood(text=""),
        PseudoLikelihood(text="a", given=((0, 1),)),
        PseudoLikelihood(text="a", given=((5, 3),)),
        PseudoLikelihood(text="a", contrast=""),
    ),
    Classify: (Classify(text=""), Classify(text="\0", pair="")),
    Embed: (Embed(text=""), Embed(text="\0")),
    Draw: (Draw(prompt="", width=0, height=-1), Draw(prompt="a", steps=0, width=1)),
}
"""Invalid requests by kind; each must get an answer or a `ModelError`, without an effect on other requests."""
