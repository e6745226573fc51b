"""Requests and responses as texts a person can read, for examples in a report."""

from __future__ import annotations

from ..contracts.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    Prompt,
    PseudoLikelihood,
    Text,
    TokenScores,
)


def show_request(request: AnyRequest) -> list[tuple[str, str]]:
    """Return (label, text) pairs of what was asked."""
    match request:
        case PseudoLikelihood() | Embed():
            return [("sentence", request.text)]
        case Classify():
            return [("text", request.text)] + ([("paired with", request.pair)] if request.pair is not None else [])
        case Generate():
            return _show_messages(request.messages)
        case Likelihood():
            return [*_show_prompt(request.prompt), *(("continuation", text) for text in request.continuations)]
        case Draw():
            return [("prompt", request.prompt)]


def show_response(response: AnyResponse) -> list[tuple[str, str]]:
    """Return (label, text) pairs of what was answered."""
    match response:
        case TokenScores():
            return [("log-probability", f"{response.log_probability:.3f} over {response.count} tokens")]
        case Generation():
            return [("answer", response.text)]
        case Likelihoods():
            return [("log-probabilities", ", ".join(f"{score.log_probability:.3f}" for score in response.scores))]
        case Classification():
            shares = ("probabilities", ", ".join(f"{k}: {v:.3f}" for k, v in response.probabilities.items()))
            return [shares, ("answer", response.text)] if response.text else [shares]
        case Drawing():
            return [("image", response.image or "none: filtered")]
        case _:
            return []


def show_images(request: AnyRequest, response: AnyResponse) -> list[tuple[str, str]]:
    """Return (label, sha256) pairs of the images that were shown to a model, and of the one it drew."""
    messages: Prompt = ()
    match request:
        case Generate():
            messages = request.messages
        case Likelihood():
            messages = request.prompt
    seen = [
        part.sha256
        for message in messages
        if isinstance(message, Message)
        for part in message.parts
        if isinstance(part, Image)
    ]
    drawn = [response.image] if isinstance(response, Drawing) and response.image is not None else []
    return [*(("image shown", sha256) for sha256 in seen), *(("image drawn", sha256) for sha256 in drawn)]


def _show_prompt(prompt: Prompt) -> list[tuple[str, str]]:
    return [("prompt", prompt)] if isinstance(prompt, str) else _show_messages(prompt)


def _show_messages(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [
        (message.role, part.text if isinstance(part, Text) else f"[image {part.sha256[:12]}]")
        for message in messages
        for part in message.parts
    ]
