"""The parts of a response that are read; everything else is skipped while decoding."""

from __future__ import annotations

import msgspec

from ...core.contracts.adapter import Remark
from ...core.contracts.errors import TransientError
from ...core.contracts.records import TopToken
from ..endpoint.answers import Answer
from ..endpoint.call import Body, remark_of
from ..endpoint.filters import FINISHES, is_filtered
from ..openai.chat import ABSENT
from ..openai.replies import Place, usage_of

KNOWN = FINISHES | {"completed", "max_output_tokens", "refusal"}


class Part(msgspec.Struct):
    """A piece of a message or of reasoning."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    logprobs: list[Place] | None = None


class Item(msgspec.Struct):
    """One item of the output: a message, or reasoning."""

    type: str = ""
    content: list[Part] | None = None
    summary: list[Part] | None = None


class Incomplete(msgspec.Struct):
    """Why a response is not complete."""

    reason: str | None = None


class ResponsesReply(Body, kw_only=True):
    """`/responses`."""

    status: str | None = None
    output: list[Item]
    incomplete_details: Incomplete | None = None
    usage: object = None
    model: object = None

    def remark(self) -> Remark | None:
        """Return the name of the model that answered."""
        return remark_of(self.model)


def read_answer(reply: ResponsesReply, where: str) -> Answer:
    """Return what a response says; reasoning is its own text, or the summary that OpenAI gives of it.

    Raises:
        TransientError: it is not finished, or has no answer.
    """
    if reply.status in ("failed", "cancelled", "in_progress", "queued"):
        raise TransientError(f"{where} sent a response that is {reply.status}.", code="endpoint.broken-off")
    why = reply.incomplete_details.reason if reply.incomplete_details is not None else None
    parts = [part for item in reply.output if item.type == "message" for part in item.content or []]
    text, refusal = "".join(part.text or "" for part in parts), "".join(part.refusal or "" for part in parts)
    if not parts and why is None:
        raise TransientError(f"{where} sent a response without a message.", code="endpoint.no-answer")
    thoughts = [item for item in reply.output if item.type == "reasoning"]
    places = [place for part in parts for place in part.logprobs or []]
    return Answer(
        text=text or refusal,
        finish=why or ("refusal" if refusal and not text else reply.status or "completed"),
        reasoning="\n\n".join(part.text or "" for item in thoughts for part in item.content or item.summary or []),
        refused=bool(refusal),
        filtered=is_filtered(why or ""),
        usage=usage_of(reply.usage),
        top_logprobs=tuple(
            tuple(TopToken(one.token, one.logprob) for one in place.top_logprobs if one.logprob > ABSENT)
            for place in places
            if place.top_logprobs
        ),
    )
