"""Settings of `gemini`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from ...core.contracts import harmless
from ...core.contracts.errors import UsageError
from ...core.contracts.thinking import Level
from ..endpoint.options import WireOptions
from ..shared.thinking import by_budget, by_known_effort

Threshold = Literal["OFF", "BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"]

BUDGETS: dict[str, int] = {"off": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576, "on": -1}
"""Tokens of thought by level; -1: as many as the model wants."""


class GeminiOptions(WireOptions, frozen=True, kw_only=True):
    """Settings of `gemini`."""

    option_effects = harmless("api_version thinking_tokens thoughts samples_per_call safety")

    base_url: str | None = None
    """Address of the endpoint, without the version. None takes the environment's GOOGLE_GEMINI_BASE_URL, else Google's.
    """
    api_version: str = "v1beta"
    """Version of the API, the first part of the path."""
    effort: str | None = None
    """How much to think, sent as `thinkingLevel`, such as minimal, low, medium, high."""
    thinking_tokens: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    """Maximum number of tokens of thought, sent as `thinkingBudget`: 0 for none, -1 for as many as the model wants."""
    thoughts: bool = False
    """Ask for summaries of the model's thoughts."""
    samples_per_call: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """Samples of one question to ask for in one call (`candidateCount`), where the model offers it; part of the
    identity."""
    safety: Literal["OFF", "BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"] | None = (
        None
    )
    """Threshold of the adjustable filters, for all their categories. None: the provider's own."""

    def __post_init__(self) -> None:
        """Refuse a level beside a budget, which Google refuses at the first request."""
        super().__post_init__()
        if self.effort is not None and self.thinking_tokens is not None:
            raise UsageError(
                f"effort = {self.effort!r} and thinking_tokens = {self.thinking_tokens} exclude each other: the API "
                "takes a level or a budget. Leave one out.",
                code="options.conflict",
            )

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set a budget of tokens; for an entry with an effort (`thinkingLevel`), the effort.

        Budgets: those that Google's endpoint in OpenAI's dialect takes for the same words.
        """
        plain = {name: value for name, value in settings.items() if name != "thinking_tokens"}
        if settings.get("effort") is not None:
            return by_known_effort(plain, level, least="minimal")
        return by_budget(plain, level, BUDGETS[level])
