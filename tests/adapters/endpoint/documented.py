"""Replies of the providers, as their documentation and the types of their own packages write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prejudge.testing import Reply

Json = dict[str, Any]
THOUGHT = "They ask for one word."


@dataclass(frozen=True)
class Provider:
    """The replies of one provider."""

    path: str
    header: str
    """Header of the key, in lower case."""
    answer: Callable[..., Json]
    """Return the reply with a text; `finish` is its finish reason, `thought` reasoning before it."""
    whole: str
    """Finish reason of an answer that is whole."""
    cut: str
    """Finish reason of an answer at its limit."""
    during: str
    """Finish reason of a filter on the answer."""
    before: Reply
    """A prompt that a filter stops."""
    before_finish: str
    texts: Callable[[Json], tuple[str, str]]
    """Return system text and last user text of a body."""
    image: Callable[[Json], tuple[str, str]]
    """Return media type and base64 of the image in a body."""
    limit: Callable[[Json], Any]
    refusal: Json | None = None
    overloaded: Reply = Reply(503)
    limited: Reply = Reply(429)
    wait: float | None = None
    inside: Json | None = None
    """An error with the status 200."""
    inside_code: str = "endpoint.server"


def _responses(text: str | None, finish: str = "completed", thought: str = "", *, refusal: bool = False) -> Json:
    part = {"type": "refusal", "refusal": text} if refusal else {"type": "output_text", "text": text, "annotations": []}
    summary = [{"type": "summary_text", "text": thought}] if thought else []
    items: list[Json] = [{"id": "rs_1", "type": "reasoning", "summary": summary}] if thought else []
    content = [] if text is None else [part]
    items.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content})
    return {
        "id": "resp_1",
        "object": "response",
        "model": "tiny",
        "status": "completed" if finish == "completed" else "incomplete",
        "error": None,
        "incomplete_details": None if finish == "completed" else {"reason": finish},
        "output": items,
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 6},
            "total_tokens": 29,
        },
    }


def _anthropic(text: str | None, finish: str = "end_turn", thought: str = "") -> Json:
    content: list[Json] = []
    if thought:
        content.append({"type": "thinking", "thinking": thought, "signature": "c2ln"})
        content.append({"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"})
    if text is not None:
        content.append({"type": "text", "text": text, "citations": None})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "tiny",
        "content": content,
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 14,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 4,
            "output_tokens": 9,
            "output_tokens_details": {"thinking_tokens": 6},
        },
    }


def _gemini(text: str | None, finish: str = "STOP", thought: str = "") -> Json:
    parts = [{"text": thought, "thought": True}] if thought else []
    content: Json = {"role": "model"}
    if text is not None or parts:
        content["parts"] = [*parts, *([{"text": text}] if text is not None else [])]
    return {
        "candidates": [{"content": content, "finishReason": finish, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 20,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 6,
            "totalTokenCount": 29,
        },
        "modelVersion": "tiny",
    }


def _bedrock(text: str | None, finish: str = "end_turn", thought: str = "") -> Json:
    content: list[Json] = []
    if thought:
        content.append({"reasoningContent": {"reasoningText": {"text": thought, "signature": "c2ln"}}})
        content.append({"reasoningContent": {"redactedContent": "ZW5jcnlwdGVk"}})
    if text is not None:
        content.append({"text": text})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": finish,
        "usage": {
            "inputTokens": 14,
            "cacheReadInputTokens": 4,
            "cacheWriteInputTokens": 2,
            "outputTokens": 9,
            "totalTokens": 29,
        },
        "metrics": {"latencyMs": 12},
    }


def google_error(code: int, status: str, message: str, *details: Json) -> Json:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def anthropic_error(kind: str, message: str = "no") -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


_RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
PROVIDERS = {
    "openai-responses": Provider(
        path="/responses",
        header="authorization",
        answer=_responses,
        whole="completed",
        cut="max_output_tokens",
        during="content_filter",
        before=Reply(400, {"error": {"message": "flagged", "type": "invalid_request_error", "code": "content_filter"}}),
        before_finish="content_filter",
        texts=lambda body: (body["instructions"], body["input"][-1]["content"][-1]["text"]),
        image=lambda body: tuple(body["input"][0]["content"][0]["image_url"][len("data:") :].split(";base64,")),
        limit=lambda body: body.get("max_output_tokens"),
        refusal=_responses("I will not.", refusal=True),
        limited=Reply(429, {"error": {"message": "slow"}}, {"x-ratelimit-reset-requests": "2s"}),
        wait=2.0,
        inside={
            "object": "response",
            "status": "failed",
            "output": [],
            "error": {"code": "server_error", "message": "x"},
        },
    ),
    "anthropic": Provider(
        path="/messages",
        header="x-api-key",
        answer=_anthropic,
        whole="end_turn",
        cut="max_tokens",
        during="refusal",
        before=Reply(400, {"error": {"message": "filter", "type": "content_filter"}}),
        before_finish="content_filter",
        texts=lambda body: (body["system"], body["messages"][-1]["content"]),
        image=lambda body: (
            body["messages"][0]["content"][0]["source"]["media_type"],
            body["messages"][0]["content"][0]["source"]["data"],
        ),
        limit=lambda body: body.get("max_tokens"),
        refusal=_anthropic("I will not.", "refusal"),
        overloaded=Reply(529, anthropic_error("overloaded_error", "Overloaded")),
        limited=Reply(429, anthropic_error("rate_limit_error"), {"retry-after": "3"}),
        wait=3.0,
        inside=anthropic_error("overloaded_error"),
    ),
    "gemini": Provider(
        path="beta/models/tiny:generateContent",
        header="x-goog-api-key",
        answer=_gemini,
        whole="STOP",
        cut="MAX_TOKENS",
        during="SAFETY",
        before=Reply(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}),
        before_finish="PROHIBITED_CONTENT",
        texts=lambda body: (body["systemInstruction"]["parts"][0]["text"], body["contents"][-1]["parts"][-1]["text"]),
        image=lambda body: (
            body["contents"][0]["parts"][0]["inlineData"]["mimeType"],
            body["contents"][0]["parts"][0]["inlineData"]["data"],
        ),
        limit=lambda body: body.get("generationConfig", {}).get("maxOutputTokens"),
        overloaded=Reply(503, google_error(503, "UNAVAILABLE", "The model is overloaded.")),
        limited=Reply(429, google_error(429, "RESOURCE_EXHAUSTED", "quota", _RETRY)),
        wait=34.0,
        inside=google_error(429, "RESOURCE_EXHAUSTED", "quota", _RETRY),
        inside_code="endpoint.rate-limit",
    ),
    "bedrock": Provider(
        path="/model/tiny/converse",
        header="authorization",
        answer=_bedrock,
        whole="end_turn",
        cut="max_tokens",
        during="content_filtered",
        before=Reply(200, _bedrock("Blocked by the guardrail.", "guardrail_intervened")),
        before_finish="guardrail_intervened",
        texts=lambda body: (body["system"][0]["text"], body["messages"][-1]["content"][-1]["text"]),
        image=lambda body: (
            f"image/{body['messages'][0]['content'][0]['image']['format']}",
            body["messages"][0]["content"][0]["image"]["source"]["bytes"],
        ),
        limit=lambda body: body.get("inferenceConfig", {}).get("maxTokens"),
        overloaded=Reply(
            503, {"message": "Too many connections."}, {"x-amzn-ErrorType": "ServiceUnavailableException"}
        ),
        limited=Reply(429, {"message": "Too many requests."}, {"x-amzn-ErrorType": "ThrottlingException"}),
        inside={"message": "The model timed out."},
    ),
}


def told(value: Json) -> Reply:
    return Reply(body=json.dumps(value))
