"""`Dialect`: how an endpoint writes its replies, so that the kit can answer in its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._standin import digest
from .chaos.http import Call, Reply


@dataclass(frozen=True)
class Dialect:
    """Replies of an endpoint, each as the value that its JSON has."""

    answer: Callable[[str], Any]
    """Return the reply to a request that is answered with this text."""
    refusal: Callable[[str], Any] | None = None
    """Return the reply of an endpoint that marks this text as a refusal; None for one that marks none."""
    filtered: Callable[[], Any] | None = None
    """Return the reply of an endpoint whose content filter stopped the answer; None for one that has none."""
    error: Callable[[str], Any] = lambda message: {"error": {"message": message}}
    """Return the body of an error with this message."""

    def echo(self, call: Call) -> Reply:
        """Answer with a digest of all that was asked: other requests have other answers."""
        return Reply(body=json.dumps(self.answer(f"answer {digest(call)}")))


def _chat(content: str | None, finish: str = "stop", **more: Any) -> Any:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **more}, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


OPENAI = Dialect(
    answer=_chat,
    refusal=lambda text: _chat(None, refusal=text),
    filtered=lambda: _chat("", "content_filter"),
    error=lambda message: {"error": {"message": message, "type": "error", "param": None, "code": None}},
)
"""Chat completions as OpenAI and many others write them."""


def _response(kind: str, text: str | None, reason: str | None = None) -> Any:
    content = [] if text is None else [{"type": kind, "refusal" if kind == "refusal" else "text": text}]
    return {
        "object": "response",
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "error": None,
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "status": "completed", "content": content},
        ],
        "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    }


RESPONSES = Dialect(
    answer=lambda text: _response("output_text", text),
    refusal=lambda text: _response("refusal", text),
    filtered=lambda: _response("output_text", None, "content_filter"),
    error=OPENAI.error,
)
"""Responses as OpenAI writes them."""


def _message(text: str | None, stop: str = "end_turn") -> Any:
    content = [] if text is None else [{"type": "text", "text": text}]
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": usage}


ANTHROPIC = Dialect(
    answer=_message,
    refusal=lambda text: _message(text, "refusal"),
    error=lambda message: {"type": "error", "error": {"type": "api_error", "message": message}},
)
"""Messages as Anthropic writes them."""


def _candidate(text: str | None, finish: str = "STOP") -> Any:
    content = {"role": "model", "parts": [{"text": text}]} if text is not None else {"role": "model"}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    return {"candidates": [{"index": 0, "content": content, "finishReason": finish}], "usageMetadata": usage}


GEMINI = Dialect(
    answer=_candidate,
    filtered=lambda: _candidate(None, "SAFETY"),
    error=lambda message: {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}},
)
"""Replies of generateContent as Google writes them."""


def _converse(text: str, stop: str = "end_turn") -> Any:
    message = {"role": "assistant", "content": [{"text": text}]}
    usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
    return {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1}}


CONVERSE = Dialect(
    answer=_converse,
    filtered=lambda: _converse("Sorry, the model cannot answer this question.", "guardrail_intervened"),
    error=lambda message: {"message": message},
)
"""Replies of Converse as Amazon Bedrock writes them."""
