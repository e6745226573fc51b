"""`Generate` as the body of a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate, Image, Message, Text
from ..endpoint.images import Look
from ..endpoint.wishes import schema_of, split_system, wish_of
from .options import AnthropicOptions

_REFUSED: dict[str, Callable[[float], bool]] = {
    "temperature": lambda value: value != 1,
    "top_p": lambda value: value < 0.95,
    "top_k": lambda value: True,
}
"""What the API refuses while a model thinks."""


def write_body(request: Generate, options: AnthropicOptions, look: Look) -> dict[str, Any]:
    """Return the body; a seed is not part of the dialect.

    Raises:
        PermanentError: settings or messages that cannot be sent.
    """
    system, messages = split_system(request.messages, options.system_prompt)
    wish = wish_of(request, options)
    body: dict[str, Any] = {"messages": [_message(one, look) for one in messages]}
    if system:
        body["system"] = system
    body |= wish.named(temperature="temperature", top_p="top_p", top_k="top_k")
    body |= wish.named(max_tokens="max_tokens", stop="stop_sequences")
    body |= _thinking(options, body)
    output: dict[str, Any] = {} if options.effort is None else {"effort": options.effort}
    if request.json_schema:
        output["format"] = {"type": "json_schema", "schema": schema_of(request)}
    return body | ({"output_config": output} if output else {})


def _thinking(options: AnthropicOptions, body: dict[str, Any]) -> dict[str, Any]:
    if options.thinking == "off":
        return {"thinking": {"type": "disabled"}}
    if options.thinking is None and options.thinking_tokens is None:
        return {}
    if refused := [name for name, is_refused in _REFUSED.items() if name in body and is_refused(body[name])]:
        raise PermanentError(
            f"a model that thinks takes no {' or '.join(refused)}, and the request has it. Put omit = "
            f"{refused!r} into the model's entry, or think less: thinking = 'off'.",
            code="request.thinking",
        )
    if options.thinking_tokens is None:
        return {"thinking": {"type": "adaptive", "display": "summarized"}}
    if options.thinking_tokens >= body["max_tokens"]:
        raise PermanentError(
            f"thinking_tokens is {options.thinking_tokens}, and the answer with its thoughts may have "
            f"{body['max_tokens']}. Set answer_room to thinking_tokens or more.",
            code="request.thinking",
        )
    return {"thinking": {"type": "enabled", "budget_tokens": options.thinking_tokens}}


def _message(message: Message, look: Look) -> dict[str, Any]:
    if len(message.parts) == 1 and isinstance(part := message.parts[0], Text):
        return {"role": message.role, "content": part.text}
    return {"role": message.role, "content": [_block(part, look) for part in message.parts]}


def _block(part: Text | Image, look: Look) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    picture = look(part.sha256)
    return {"type": "image", "source": {"type": "base64", "media_type": picture.kind, "data": picture.data}}
