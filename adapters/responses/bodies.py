"""`Generate` as the body of a response."""

from __future__ import annotations

from typing import Any

from ...core.contracts.records import Generate, Image, Message
from ..endpoint.images import Look
from ..endpoint.wishes import schema_of, split_system, wish_of
from .options import ResponsesOptions


def write_body(request: Generate, options: ResponsesOptions, look: Look) -> dict[str, Any]:
    """Return the body; a seed and stop texts are not part of the dialect.

    Raises:
        PermanentError: settings or messages that cannot be sent.
    """
    system, messages = split_system(request.messages, options.system_prompt)
    wish = wish_of(request, options)
    body: dict[str, Any] = {"input": [_message(one, look, options.image_detail) for one in messages], "store": False}
    if system:
        body["instructions"] = system
    body |= wish.named(temperature="temperature", top_p="top_p", max_tokens="max_output_tokens")
    reasoning = {"effort": options.effort, "summary": options.summary}
    if chosen := {name: value for name, value in reasoning.items() if value is not None}:
        body["reasoning"] = chosen
    if request.top_logprobs:
        body |= {"include": ["message.output_text.logprobs"], "top_logprobs": request.top_logprobs}
    if request.json_schema:
        form = {"type": "json_schema", "name": "answer", "schema": schema_of(request), "strict": True}
        body["text"] = {"format": form}
    return body


def _message(message: Message, look: Look, detail: str) -> dict[str, Any]:
    kind = "output_text" if message.role == "assistant" else "input_text"
    content = [
        {"type": "input_image", "image_url": look(part.sha256).url, "detail": detail}
        if isinstance(part, Image)
        else {"type": kind, "text": part.text}
        for part in message.parts
    ]
    return {"role": message.role, "content": content}
