"""Settings of `openai-responses`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...core.contracts import harmless
from ...core.contracts.thinking import Level
from ..endpoint.options import WireOptions
from ..shared.thinking import by_effort


class ResponsesOptions(WireOptions, frozen=True, kw_only=True):
    """Settings of `openai-responses`."""

    option_effects = harmless("organization project summary image_detail")

    base_url: str | None = None
    """Address of the endpoint, including `/v1`. None takes the environment's OPENAI_BASE_URL, else OpenAI's own."""
    organization: str | None = None
    """OpenAI organisation; None takes the environment's OPENAI_ORG_ID."""
    project: str | None = None
    """OpenAI project; None takes the environment's OPENAI_PROJECT_ID."""
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Summary of the reasoning to request; OpenAI does not give the reasoning itself."""
    image_detail: Literal["auto", "low", "high", "original"] = "auto"
    """Level of detail of images for the endpoint."""

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the reasoning effort, `none` for off."""
        return by_effort(settings, level, off="none", on="medium")
