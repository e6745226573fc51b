"""`Wish`: what a request and the settings ask of an answer in words, before a dialect names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.contracts.canonical import wire_seed
from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate, Image, Message
from ..shared.sampling import check_answer
from .options import EndpointOptions

JOINT = "\n\n"


class Wish(NamedTuple):
    """What to send; None and () are not sent."""

    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    max_tokens: int | None
    stop: tuple[str, ...]
    seed: int | None

    def named(self, **names: str) -> dict[str, Any]:
        """Return what is to be sent under a dialect's names."""
        values = ((field, getattr(self, own)) for own, field in names.items())
        return {field: value for field, value in values if value is not None and value != ()}


def wish_of(request: Generate, options: EndpointOptions, generation: int = 0) -> Wish:
    """Return what is to be sent: a limit with the answer's room, a seed for every repeat, nothing that is omitted.

    Raises:
        PermanentError: settings under which no answer can be given.
    """
    asked = request.sampling
    check_answer(asked)
    limit = asked.max_tokens or options.max_tokens
    wish = Wish(
        temperature=asked.temperature,
        top_p=asked.top_p,
        top_k=asked.top_k,
        min_p=asked.min_p,
        max_tokens=None if limit is None else limit + options.answer_room,
        stop=asked.stop,
        seed=wire_seed(request, generation),
    )
    if not options.omit:
        return wish
    left_out: Mapping[str, Any] = {name: () if name == "stop" else None for name in Wish._fields}
    return wish._replace(**{name: left_out[name] for name in options.omit if name in left_out})


def split_system(messages: Sequence[Message], prompt: str | None) -> tuple[str, Sequence[Message]]:
    """Return the system text, with the prompt of the settings before it, and the other messages.

    Raises:
        PermanentError: a system message that is not at the start, or has an image, which the dialect cannot send.
    """
    first = next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))
    system, rest = messages[:first], messages[first:]
    images = any(isinstance(part, Image) for one in system for part in one.parts)
    if images or any(one.role == "system" for one in rest):
        raise PermanentError(
            "this endpoint takes system messages at the start only, and without images.", code="request.system"
        )
    texts = ["".join(part.text for part in one.parts if not isinstance(part, Image)) for one in system]
    return JOINT.join([*([prompt] if prompt else []), *texts]), rest


def schema_of(request: Generate) -> dict[str, Any]:
    """Return the JSON schema of a request.

    Raises:
        PermanentError: it is no JSON object.
    """
    try:
        schema = msgspec.json.decode(request.json_schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        schema = None
    if not isinstance(schema, dict):
        raise PermanentError("json_schema of a request is not a JSON object.", code="request.value")
    return schema
