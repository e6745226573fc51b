"""`Generate` as the body of Converse."""

from __future__ import annotations

from typing import Any

from ...core.contracts.records import Generate, Image, Message, Text
from ..endpoint.images import Look
from ..endpoint.wishes import schema_of, split_system, wish_of
from .options import BedrockOptions


def write_body(request: Generate, options: BedrockOptions, look: Look) -> dict[str, Any]:
    """Return the body; a seed is not part of the dialect.

    Raises:
        PermanentError: settings or messages that cannot be sent.
    """
    system, messages = split_system(request.messages, options.system_prompt)
    wish = wish_of(request, options)
    body: dict[str, Any] = {"messages": [_message(one, look) for one in messages]}
    if system:
        body["system"] = [{"text": system}]
    config = wish.named(temperature="temperature", top_p="topP", max_tokens="maxTokens", stop="stopSequences")
    if config:
        body["inferenceConfig"] = config
    if options.guardrail is not None:
        guardrail = {"guardrailIdentifier": options.guardrail, "guardrailVersion": options.guardrail_version}
        body["guardrailConfig"] = guardrail
    output: dict[str, Any] = {} if options.effort is None else {"effort": options.effort}
    if request.json_schema:
        # Converse wants the schema as text.
        schema_of(request)
        schema = {"jsonSchema": {"schema": request.json_schema, "name": "answer"}}
        output["textFormat"] = {"type": "json_schema", "structure": schema}
    return body | ({"outputConfig": output} if output else {})


def _message(message: Message, look: Look) -> dict[str, Any]:
    return {"role": message.role, "content": [_block(part, look) for part in message.parts]}


def _block(part: Text | Image, look: Look) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    picture = look(part.sha256)
    return {"image": {"format": picture.kind.removeprefix("image/"), "source": {"bytes": picture.data}}}
