"""Settings of `bedrock`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.contracts import OptionEffect, harmless
from ...core.contracts.thinking import Level
from ..endpoint.options import WireOptions
from ..shared.thinking import by_known_effort


class BedrockOptions(WireOptions, frozen=True, kw_only=True):
    """Settings of `bedrock`."""

    option_effects = {
        "profile": "secret",
        **harmless("region guardrail guardrail_version"),
    }

    base_url: str | None = None
    """Address of the endpoint. None takes the environment's AWS_ENDPOINT_URL_BEDROCK_RUNTIME, else that of the region.
    """
    region: str | None = None
    """AWS region; None takes the environment's or the profile's."""
    profile: str | None = None
    """Profile of the AWS configuration whose credentials sign; None takes botocore's usual order."""
    api_key_env: str | None = None
    """NAME of a variable that holds a Bedrock API key, sent in place of a signature. None: AWS credentials sign;
    "": neither key nor signature."""
    api_key_file: str | None = None
    """A file that holds such a key and nothing else."""
    guardrail: str | None = None
    """Identifier of a guardrail that checks prompts and answers."""
    guardrail_version: str = "DRAFT"
    """Version of the guardrail."""
    effort: str | None = None
    """How much to spend on an answer, sent as `outputConfig.effort`."""

    @property
    def signs(self) -> bool:
        """Whether AWS credentials may sign: no key is named, and the settings do not say that there is none."""
        return self.api_key_env is None and self.api_key_file is None

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do: requests to any address are signed, unless the settings name a key or none."""
        yield from super().list_effects()
        if self.signs:
            yield OptionEffect("secret", "api_key_env", says="signs requests with your AWS credentials")
        if self.profile is not None:
            yield OptionEffect("secret", "profile", self.profile)

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the effort."""
        return by_known_effort(settings, level)
