"""The parts of a message that are read; everything else is skipped while decoding."""

from __future__ import annotations

import msgspec

from ...core.contracts.adapter import Remark
from ...core.contracts.errors import TransientError
from ...core.contracts.records import Usage
from ..endpoint.answers import Answer, count
from ..endpoint.call import Body, remark_of

KNOWN = frozenset({"end_turn", "max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded"})


class Block(msgspec.Struct):
    """A piece of a message. The data of redacted thinking is encrypted, and is not read."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None


class MessageReply(Body, kw_only=True):
    """`/v1/messages`."""

    content: list[Block]
    stop_reason: str | None = None
    usage: object = None
    model: object = None

    def remark(self) -> Remark | None:
        """Return the name of the model that answered."""
        return remark_of(self.model)


def read_answer(reply: MessageReply, where: str) -> Answer:
    """Return what a message says.

    Raises:
        TransientError: the model paused in the middle of its answer.
    """
    finish = reply.stop_reason or ""
    if finish == "pause_turn":
        raise TransientError(f"{where} paused in the middle of an answer.", code="endpoint.broken-off")
    return Answer(
        text="".join(block.text or "" for block in reply.content if block.type == "text"),
        finish=finish,
        reasoning="\n\n".join(block.thinking or "" for block in reply.content if block.type == "thinking"),
        refused=finish == "refusal",
        usage=usage_of(reply.usage),
    )


def usage_of(told: object) -> Usage:
    """Return the counts of a message. Its `input_tokens` are those that were not in the cache: all three are input."""
    counts = told if isinstance(told, dict) else {}
    details = counts.get("output_tokens_details")
    read = count(counts.get("cache_read_input_tokens"))
    return Usage(
        input_tokens=count(counts.get("input_tokens")) + count(counts.get("cache_creation_input_tokens")) + read,
        output_tokens=count(counts.get("output_tokens")),
        reasoning_tokens=count(details.get("thinking_tokens")) if isinstance(details, dict) else 0,
        cached_tokens=read,
    )
