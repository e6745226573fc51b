"""The parts of an endpoint's answers that are read; everything else is skipped while decoding."""

from __future__ import annotations

import msgspec

from ...core.contracts.adapter import Remark
from ...core.contracts.records import Usage
from ..endpoint.answers import count
from ..endpoint.call import Body, remark_of


class Alternative(msgspec.Struct):
    """An alternative token at a position."""

    token: str
    logprob: float


class Place(msgspec.Struct):
    """A generated token with its alternatives."""

    top_logprobs: list[Alternative] = []


class ChatLogprobs(msgspec.Struct):
    """Log-probabilities in the form of chat completions."""

    content: list[Place] | None = None


class Part(msgspec.Struct):
    """A piece of an answer; one of a model's reasoning has it as `thinking`, a text or pieces."""

    text: str | None = None
    refusal: str | None = None
    thinking: object = None


class ChatMessage(msgspec.Struct):
    """What the model said; some endpoints send it in pieces."""

    content: str | list[Part] | None = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    """Two names for one thing; what is no text is not read."""

    def thoughts(self) -> str:
        """Return what the endpoint gives as reasoning."""
        pieces = self.content if isinstance(self.content, list) else []
        return _text(self.reasoning_content) or _text(self.reasoning) or "".join(_text(one.thinking) for one in pieces)

    def words(self) -> str:
        """Return the answer in words, or the refusal if there is nothing else."""
        content = self.content
        said = content if isinstance(content, str) else "".join(part.text or "" for part in content or [])
        return said or self.refused()

    def refused(self) -> str:
        """Return what the provider marks as a refusal, or nothing."""
        pieces = self.content if isinstance(self.content, list) else []
        return self.refusal or "".join(part.refusal or "" for part in pieces)


def _text(told: object) -> str:
    if isinstance(told, list):
        return "".join(_text(one.get("text")) for one in told if isinstance(one, dict))
    return told if isinstance(told, str) else ""


class ChatChoice(msgspec.Struct):
    """One answer."""

    message: ChatMessage | None = None
    """None only beside an error."""
    index: int | None = None
    error: object = None
    finish_reason: str | None = None
    native_finish_reason: object = None
    """That of the provider behind OpenRouter, which folds it into few words."""
    logprobs: ChatLogprobs | None = None


class PromptToken(msgspec.Struct):
    """One entry of vLLM's `prompt_logprobs`."""

    logprob: float
    decoded_token: str | None = None


PromptTokens = list[dict[str, PromptToken] | None]


class Counted(Body, kw_only=True):
    """A reply that may count tokens, and name what answered."""

    usage: object = None
    """Read by `usage_of`: a nonsensical count costs no answer."""
    model: object = None
    system_fingerprint: object = None
    provider: object = None
    """The one that OpenRouter had answer."""

    def remark(self) -> Remark | None:
        """Return the names of model, system and provider."""
        return remark_of(self.model, self.system_fingerprint, self.provider)


class ChatReply(Counted):
    """`/chat/completions`."""

    choices: list[ChatChoice]
    prompt_logprobs: PromptTokens | None = None

    def failed(self) -> object:
        """Return the error of the reply, or of its first choice."""
        return self.error or _failed(self.choices)


class TextLogprobs(msgspec.Struct):
    """Log-probabilities in the form of completions; llama.cpp's server uses that of chat completions."""

    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    text_offset: list[int] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None
    content: list[Place] | None = None


class TextChoice(msgspec.Struct):
    """One answer."""

    text: str = ""
    index: int | None = None
    error: object = None
    logprobs: TextLogprobs | None = None
    prompt_logprobs: PromptTokens | None = None


class TextReply(Counted):
    """`/completions`."""

    choices: list[TextChoice]

    def failed(self) -> object:
        """Return the error of the reply, or of its first choice."""
        return self.error or _failed(self.choices)


def _failed(choices: list[ChatChoice] | list[TextChoice]) -> object:
    # A server may send the choices in any order.
    choices.sort(key=lambda choice: choice.index or 0)
    return choices[0].error if choices else None


class Vector(msgspec.Struct):
    """One embedding."""

    embedding: list[float]


class EmbeddingReply(Counted):
    """`/embeddings`."""

    data: list[Vector]


class Picture(msgspec.Struct):
    """One image, as base64 or behind a link."""

    b64_json: str | None = None
    url: str | None = None


class ImageReply(Counted):
    """`/images/generations`."""

    data: list[Picture]


class Share(msgspec.Struct):
    """A label with its probability."""

    value: str | bool
    probability: float


class Decided(msgspec.Struct):
    """An answer to one question; `probabilities` is missing in a refusal."""

    type: str
    probabilities: list[Share] | dict[str, float] | None = None


class DecisionReply(Counted):
    """`/decisions`: answers in the order of the questions. `/systemone`: answers by name."""

    answers: list[Decided] | dict[str, Decided]


def usage_of(told: object) -> Usage:
    """Return the record of an endpoint's token counts, whose names differ by API; what is no count is 0."""
    counts = told if isinstance(told, dict) else {}
    return Usage(
        input_tokens=count(counts.get("prompt_tokens")) or count(counts.get("input_tokens")),
        output_tokens=count(counts.get("completion_tokens")) or count(counts.get("output_tokens")),
        # SGLang counts them beside the others, not in details.
        reasoning_tokens=_detail(counts, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
        or count(counts.get("reasoning_tokens")),
        cached_tokens=_detail(counts, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
    )


def _detail(counts: dict[str, object], places: tuple[str, str], name: str) -> int:
    for place in places:
        if isinstance(details := counts.get(place), dict):
            return count(details.get(name))
    return 0
