"""Who asks OpenAI, and two ways to send it: `LeanWire` with the API's headers, and `SdkWire`, the package's stack.

Both end in the same `Reply` or the same `ModelError`. The lean one leaves out what the package does per call: building
a request object, walking pydantic models, telemetry headers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ...core.contracts.errors import ModelError
from ...core.contracts.version import VERSION
from ..endpoint.failures import explain_cut, late, refused_credentials
from ..endpoint.scrub import Scrubber
from ..endpoint.wire import Endpoint, LargeError, LeanWire, Reply, Wire, too_large, within

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

    from ..responses.options import ResponsesOptions
    from .options import OpenAIOptions


class Account(NamedTuple):
    """Who asks."""

    key: str | None
    organization: str | None
    project: str | None
    field: str = "authorization"
    """Header that carries the key."""

    def __repr__(self) -> str:
        """Show nothing of the key."""
        return "Account()"

    @classmethod
    def at(cls, home: bool, key: str | None, options: OpenAIOptions | ResponsesOptions) -> Account:
        """Return who asks; the environment names an account of the provider, which no other address is told."""
        return cls(
            key,
            options.organization or (os.environ.get("OPENAI_ORG_ID") if home else None),
            options.project or (os.environ.get("OPENAI_PROJECT_ID") if home else None),
            getattr(options, "header", "authorization"),
        )

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, as the API has them."""
        given = {
            "Authorization": f"Bearer {self.key}" if self.key is not None and self.field == "authorization" else None,
            "api-key": self.key if self.field == "api-key" else None,
            "OpenAI-Organization": self.organization,
            "OpenAI-Project": self.project,
        }
        own = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"prejudge/{VERSION}"}
        return own | {name: value for name, value in given.items() if value}


def make_wire(endpoint: Endpoint, transport: str, scrub: Scrubber, account: Account) -> Wire:
    """Return the way to an endpoint."""
    return SdkWire(endpoint, scrub, account) if transport == "sdk" else LeanWire(endpoint, scrub)


def make_client(endpoint: Endpoint, account: Account, client: httpx2.AsyncClient) -> AsyncOpenAI:
    """Return the package's client for an endpoint, with its retries off. Without a key it holds a placeholder."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=account.key or "none",
        base_url=endpoint.address,
        organization=account.organization,
        project=account.project,
        timeout=endpoint.timeout_seconds,
        max_retries=0,
        http_client=client,
    )


class SdkWire:
    """The openai package's own stack on its default transport."""

    def __init__(self, endpoint: Endpoint, scrub: Scrubber, account: Account) -> None:
        import httpx2
        from openai import DefaultAsyncHttpxClient, Omit

        limits = httpx2.Limits(
            max_connections=endpoint.connections, max_keepalive_connections=endpoint.connections, keepalive_expiry=60
        )
        hooks = {"response": [self._read]}
        self._proxy = endpoint.proxy
        # The package would read the environment by rules of its own, which know no networks in NO_PROXY.
        url = None if self._proxy is None else self._proxy.url
        way: dict[str, Any] = {"proxy": url} if url else {"mounts": {"http://": None, "https://": None}}
        client = DefaultAsyncHttpxClient(limits=limits, follow_redirects=False, event_hooks=hooks, **way)
        self._client, self._endpoint = make_client(endpoint, account, client), endpoint
        self._where, self._seconds, self._scrub = endpoint.where, endpoint.timeout_seconds, scrub
        named = {
            "Authorization": account.key,
            "OpenAI-Organization": account.organization,
            "OpenAI-Project": account.project,
        }
        # The package would take what is not named from the environment.
        self._options: Any = {"headers": {name: Omit() for name, value in named.items() if value is None}}

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a body; see `Wire`."""
        import httpx2
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        failure: ModelError | None = None
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._client.post(path, cast_to=httpx2.Response, content=body, options=self._options)
        except APIStatusError as error:
            response = error.response
        except (TimeoutError, APITimeoutError):
            failure = late(self._where, self._seconds, self._proxy)
        except APIConnectionError as error:
            failure = explain_cut(error.__cause__ or error, self._where, self._scrub, self._proxy)
        except LargeError:
            failure = too_large(self._endpoint, path)
        # Raised out here, so that no foreign error with its request and headers hangs on to it.
        if failure is not None:
            raise failure
        if self._proxy is not None and response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise refused_credentials(self._proxy)
        return Reply(response.status_code, response.headers, response.content)

    async def _read(self, response: httpx2.Response) -> None:
        """Read a reply before the package does, which would read one of any size."""
        path = response.request.url.path.removeprefix(urlsplit(self._endpoint.address).path)
        response._content = await within(self._endpoint.most(path), response.aiter_bytes())

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()
