"""Settings of `bedrock`."""

from __future__ import annotations

from ..endpoint.options import EndpointOptions


class BedrockOptions(EndpointOptions, frozen=True, kw_only=True):
    """Settings of `bedrock`."""

    base_url: str | None = None
    """Address of the endpoint. None takes the environment's AWS_ENDPOINT_URL_BEDROCK_RUNTIME, else that of the region.
    """
    region: str | None = None
    """AWS region; None takes the environment's or the profile's."""
    profile: str | None = None
    """Profile of the AWS configuration whose credentials sign; None takes botocore's usual order."""
    api_key_env: str | None = None
    """NAME of a variable that holds a Bedrock API key, sent in place of a signature. None: AWS credentials sign."""
    api_key_file: str | None = None
    """A file that holds such a key and nothing else."""
    guardrail: str | None = None
    """Identifier of a guardrail that checks prompts and answers."""
    guardrail_version: str = "DRAFT"
    """Version of the guardrail."""
    effort: str | None = None
    """How much to spend on an answer, sent as `outputConfig.effort`."""
