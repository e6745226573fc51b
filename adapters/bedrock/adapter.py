"""`bedrock`: Amazon Bedrock's Converse, signed by botocore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from ...core.contracts.records import Generate, Scalar
from ..endpoint.adapter import EndpointAdapter
from ..endpoint.answers import Answer
from ..endpoint.call import Body
from ..endpoint.images import Look
from ..endpoint.keys import Home, find_address, find_key
from ..endpoint.wire import require_packages
from .bodies import write_body
from .options import BedrockOptions
from .replies import KNOWN, ConverseReply, read_answer
from .signing import Signer, find_region, open_session

HOME = Home(
    "bedrock",
    "Amazon",
    "https://bedrock-runtime.us-east-1.amazonaws.com",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    "AWS_BEARER_TOKEN_BEDROCK",
    extra="bedrock",
    fixed=frozenset({"messages", "system", "guardrailConfig"}),
)


class Bedrock(EndpointAdapter):
    """A model behind Converse. The dialect has no seed and no log-probabilities."""

    options: ClassVar[type[msgspec.Struct]] = BedrockOptions
    home = HOME
    packages = ("botocore",)
    reply: ClassVar[type[Body]] = ConverseReply
    known = KNOWN
    named = False
    fields = frozenset({"json_schema"})

    def __init__(self, options: BedrockOptions) -> None:
        """Find region, address and key; nothing is sent, and credentials are not looked for yet.

        Raises:
            MissingExtraError: a client or botocore is not installed.
            UsageError: a setting is invalid, or no region is named.
        """
        require_packages("bedrock", "bedrock", self.packages)
        session = open_session(options.profile)
        self._region = find_region(options.region, session)
        super().__init__(options)
        self._signer: Signer | None = None
        if options.signs and self.key(options, self.address(options)) is None:
            self._signer = Signer(self.address(options), self._region, session, self._scrub)
            self._caller.sign = self._signer.sign

    def address(self, options: BedrockOptions) -> str:
        """Return the address of the region, unless settings or environment name another."""
        return find_address(options, self._home())

    def key(self, options: BedrockOptions, address: str) -> str | None:
        """Return a Bedrock API key, if there is one; else AWS credentials sign, unless the settings name no key."""
        if options.signs and not os.environ.get(HOME.key_env):
            return None
        return find_key(options, address, self._home())

    def settings(self, options: BedrockOptions) -> dict[str, Scalar]:
        """Return what only this dialect has; the region is in the address."""
        if options.guardrail is None:
            return {}
        return {"guardrail": options.guardrail, "guardrail_version": options.guardrail_version}

    def headers(self, options: BedrockOptions, key: str | None) -> Mapping[str, str]:
        """Return the API key, if there is one."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def path(self) -> str:
        """Return the path that answers."""
        return f"/model/{quote(self._options.model, safe='')}/converse"

    def write(self, request: Generate, look: Look, generation: int) -> dict[str, Any]:
        """Return the body of a request."""
        return write_body(request, self._options, look)

    def understand(self, reply: ConverseReply, request: Generate) -> Answer:
        """Return what a reply says."""
        return read_answer(reply, self._caller.where)

    async def aclose(self) -> None:
        """Close the connections and the thread that signs."""
        await super().aclose()
        if self._signer is not None:
            self._signer.close()

    def _home(self) -> Home:
        return HOME._replace(url=f"https://bedrock-runtime.{self._region}.amazonaws.com")
