"""`Generate` as the body of generateContent."""

from __future__ import annotations

from typing import Any

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate, Image, Message
from ..endpoint.images import Look
from ..endpoint.wishes import schema_of, split_system, wish_of
from .options import GeminiOptions

_CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")


def write_body(request: Generate, options: GeminiOptions, look: Look, generation: int) -> dict[str, Any]:
    """Return the body.

    Raises:
        PermanentError: settings or messages that cannot be sent.
    """
    system, messages = split_system(request.messages, options.system_prompt)
    wish = wish_of(request, options, generation)
    body: dict[str, Any] = {"contents": [_content(one, look) for one in messages]}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    config = wish.named(temperature="temperature", top_p="topP", top_k="topK")
    config |= wish.named(max_tokens="maxOutputTokens", stop="stopSequences", seed="seed")
    if request.top_logprobs:
        config |= {"responseLogprobs": True, "logprobs": request.top_logprobs}
    config |= _constraint(request)
    if thinking := _thinking(options):
        config["thinkingConfig"] = thinking
    if config:
        body["generationConfig"] = config
    if options.safety is not None:
        body["safetySettings"] = [
            {"category": f"HARM_CATEGORY_{name}", "threshold": options.safety} for name in _CATEGORIES
        ]
    return body


def _thinking(options: GeminiOptions) -> dict[str, Any]:
    named = {"thinkingLevel": options.effort, "thinkingBudget": options.thinking_tokens}
    chosen = {name: value for name, value in named.items() if value is not None}
    return chosen | ({"includeThoughts": True} if options.thoughts else {})


def _constraint(request: Generate) -> dict[str, Any]:
    if request.json_schema and request.choices:
        raise PermanentError("a request has a JSON schema and choices; it can have one.", code="request.value")
    if request.json_schema:
        return {"responseMimeType": "application/json", "responseJsonSchema": schema_of(request)}
    if request.choices:
        schema = {"type": "STRING", "enum": list(request.choices)}
        return {"responseMimeType": "text/x.enum", "responseSchema": schema}
    return {}


def _content(message: Message, look: Look) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Image):
            picture = look(part.sha256)
            parts.append({"inlineData": {"mimeType": picture.kind, "data": picture.data}})
        else:
            parts.append({"text": part.text})
    return {"role": "model" if message.role == "assistant" else "user", "parts": parts}
