"""The parts of a reply that are read; everything else is skipped while decoding."""

from __future__ import annotations

import msgspec

from ...core.contracts.adapter import Remark
from ...core.contracts.errors import PermanentError, TransientError
from ...core.contracts.records import TopToken, Usage
from ..endpoint.answers import Answer, count
from ..endpoint.call import Body, remark_of
from ..endpoint.filters import FINISHES, is_blocked, is_filtered

KNOWN = FINISHES | {"stop", "max_tokens"}
_BROKEN = frozenset({"MALFORMED_RESPONSE"})


class Part(msgspec.Struct):
    """A piece of an answer; `thought` marks one of reasoning."""

    text: str | None = None
    thought: bool | None = None


class Content(msgspec.Struct):
    """The pieces of an answer."""

    parts: list[Part] | None = None


class Alternative(msgspec.Struct, rename="camel"):
    """An alternative token at a position."""

    token: str = ""
    log_probability: float | None = None


class Top(msgspec.Struct):
    """The likeliest tokens at a position."""

    candidates: list[Alternative] = []


class Logprobs(msgspec.Struct, rename="camel"):
    """Log-probabilities of an answer."""

    top_candidates: list[Top] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    """One answer."""

    content: Content | None = None
    index: int | None = None
    finish_reason: str | None = None
    logprobs_result: Logprobs | None = None


class Feedback(msgspec.Struct, rename="camel"):
    """What a filter says of the prompt."""

    block_reason: str | None = None


class ContentReply(Body, kw_only=True, rename="camel"):
    """`:generateContent`."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: object = None
    model_version: object = None

    def remark(self) -> Remark | None:
        """Return the name of the model that answered."""
        return remark_of(self.model_version)


def read_answer(reply: ContentReply, where: str, *, logprobs: bool) -> Answer:
    """Return what a reply says. A prompt that was blocked has no candidates: its reason is the finish reason.

    Raises:
        TransientError: there is no candidate and no reason, or the answer broke off.
        PermanentError: it lacks the log-probabilities that were asked for.
    """
    usage = usage_of(reply.usage_metadata)
    blocked = reply.prompt_feedback.block_reason if reply.prompt_feedback is not None else None
    if not reply.candidates:
        if blocked:
            return Answer(text="", finish=blocked, filtered=is_blocked(blocked), usage=usage)
        raise TransientError(f"{where} sent a reply without an answer (no candidates).", code="endpoint.no-answer")
    one = reply.candidates[0]
    finish = one.finish_reason or ""
    if finish in _BROKEN:
        raise TransientError(f"{where} ended an answer with {finish}.", code="endpoint.broken-off")
    parts = one.content.parts or [] if one.content is not None else []
    text = "".join(part.text or "" for part in parts if not part.thought)
    top = one.logprobs_result.top_candidates if one.logprobs_result is not None else None
    if logprobs and not top and text and not is_filtered(finish):
        raise PermanentError(
            f"{where} gives no log-probabilities of tokens; ask without top_logprobs.", code="endpoint.no-logprobs"
        )
    return Answer(
        text=text,
        finish=finish,
        reasoning="".join(part.text or "" for part in parts if part.thought),
        filtered=is_filtered(finish),
        usage=usage,
        top_logprobs=tuple(_tokens(place) for place in top or []) if logprobs else (),
    )


def in_order(reply: ContentReply) -> list[Candidate]:
    """Return the candidates by their index, which is not sent where it is 0."""
    return sorted(reply.candidates or [], key=lambda one: one.index or 0)


def _tokens(place: Top) -> tuple[TopToken, ...]:
    return tuple(
        TopToken(one.token, one.log_probability) for one in place.candidates if one.log_probability is not None
    )


def usage_of(told: object) -> Usage:
    """Return the counts of a reply. Its thoughts are counted apart from the answer, and both are output."""
    counts = told if isinstance(told, dict) else {}
    thoughts = count(counts.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=count(counts.get("promptTokenCount")),
        output_tokens=count(counts.get("candidatesTokenCount")) + thoughts,
        reasoning_tokens=thoughts,
        cached_tokens=count(counts.get("cachedContentTokenCount")),
    )
