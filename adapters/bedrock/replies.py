"""The parts of a reply that are read; everything else is skipped while decoding."""

from __future__ import annotations

import msgspec

from ...core.contracts.errors import TransientError
from ...core.contracts.records import Usage
from ..endpoint.answers import Answer, count
from ..endpoint.call import Body
from ..endpoint.filters import FINISHES, is_filtered

KNOWN = FINISHES | {"end_turn", "max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded"}
_BROKEN = frozenset({"malformed_model_output", "malformed_tool_use"})


class ReasoningText(msgspec.Struct):
    """Reasoning in words."""

    text: str = ""


class Reasoning(msgspec.Struct, rename="camel"):
    """Reasoning; redacted one is encrypted, and is not read."""

    reasoning_text: ReasoningText | None = None


class Block(msgspec.Struct, rename="camel"):
    """A piece of a message."""

    text: str | None = None
    reasoning_content: Reasoning | None = None


class Message(msgspec.Struct):
    """What the model said."""

    content: list[Block] | None = None


class Output(msgspec.Struct):
    """The output of a conversation."""

    message: Message | None = None


class ConverseReply(Body, kw_only=True, rename="camel"):
    """`/model/.../converse`."""

    output: Output
    stop_reason: str | None = None
    usage: object = None


def read_answer(reply: ConverseReply, where: str) -> Answer:
    """Return what a reply says. What a guardrail puts in the place of an answer is kept as its text.

    Raises:
        TransientError: there is no message, or the model broke off.
    """
    finish = reply.stop_reason or ""
    if reply.output.message is None:
        raise TransientError(f"{where} sent a reply without a message.", code="endpoint.no-answer")
    if finish in _BROKEN:
        raise TransientError(f"{where} ended an answer with {finish}.", code="endpoint.broken-off")
    blocks = reply.output.message.content or []
    thoughts = [block.reasoning_content.reasoning_text for block in blocks if block.reasoning_content is not None]
    return Answer(
        text="".join(block.text or "" for block in blocks),
        finish=finish,
        reasoning="\n\n".join(thought.text for thought in thoughts if thought is not None),
        refused=finish == "refusal",
        filtered=is_filtered(finish),
        usage=usage_of(reply.usage),
    )


def usage_of(told: object) -> Usage:
    """Return the counts of a reply. Its `inputTokens` are those that were not in the cache: all three are input."""
    counts = told if isinstance(told, dict) else {}
    read = count(counts.get("cacheReadInputTokens"))
    return Usage(
        input_tokens=count(counts.get("inputTokens")) + count(counts.get("cacheWriteInputTokens")) + read,
        output_tokens=count(counts.get("outputTokens")),
        cached_tokens=read,
    )
