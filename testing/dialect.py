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
