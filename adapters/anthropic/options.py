"""Settings of `anthropic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from ...core.contracts import harmless
from ...core.contracts.errors import UsageError
from ...core.contracts.thinking import Level
from ..endpoint.options import Positive, WireOptions
from ..shared.thinking import ROOM, by_budget, by_known_effort, with_room


class AnthropicOptions(WireOptions, frozen=True, kw_only=True):
    """Settings of `anthropic`."""

    option_effects = harmless("thinking thinking_tokens anthropic_version")

    base_url: str | None = None
    """Address of the endpoint, without `/v1`. None takes the environment's ANTHROPIC_BASE_URL, else Anthropic's own."""
    max_tokens: Positive = 4096
    """Maximum number of tokens to generate if the request sets no limit; the API wants one."""
    thinking: Literal["off", "adaptive"] | None = None
    """Extended thinking: `off`, or as much as the model finds right. None sends nothing: the model's own default."""
    thinking_tokens: Annotated[int, msgspec.Meta(ge=1024)] | None = None
    """Maximum number of tokens of extended thinking, for models that take a budget; below the limit of the answer."""
    effort: str | None = None
    """How much to spend on an answer, sent as `output_config.effort`, such as low, medium, high, xhigh, max."""
    anthropic_version: str = "2023-06-01"
    """Version of the API, sent as `anthropic-version`."""

    def __post_init__(self) -> None:
        """Refuse a budget of thoughts beside another word about thinking: one of them would not be sent."""
        super().__post_init__()
        if self.thinking is not None and self.thinking_tokens is not None:
            raise UsageError(
                f"thinking = {self.thinking!r} and thinking_tokens = {self.thinking_tokens} exclude each other. "
                "Leave one out.",
                code="options.conflict",
            )

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set a budget of tokens; for an entry with adaptive thinking or an effort, the effort of adaptive thinking."""
        plain = {name: value for name, value in settings.items() if name not in ("thinking", "thinking_tokens")}
        if level == "off":
            return with_room({**plain, "thinking": "off"}, level)
        if settings.get("thinking") == "adaptive" or settings.get("effort") is not None:
            return by_known_effort({**plain, "thinking": "adaptive"}, level)
        return by_budget(plain, level, ROOM[level])
