"""Settings of a model that reasons before it answers, as all adapters have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from ...core.contracts.records import Scalar


class Thinking(Protocol):
    """Settings of a model that reasons."""

    @property
    def answer_room(self) -> int:
        """Tokens added to the limit of a request, for reasoning."""
        ...


def thinking_settings(options: Thinking, template: Mapping[str, Any] | None = None) -> dict[str, Scalar]:
    """Return the part of these settings that belongs to a model's identity: those that are set."""
    settings: dict[str, Scalar] = {}
    if options.answer_room:
        settings["answer_room"] = options.answer_room
    if template:
        settings["chat_template_kwargs"] = msgspec.json.encode(template, order="sorted").decode()
    return settings
