"""`HttpxWire`: the second client for endpoints, httpx, and the choice between it and the lean one.

Both keep the rules of `wire`: proxies by the same rules, the same certificates, no cookie, no redirect, no retry, the
same limits of time and size. httpx speaks HTTP/2 where the package h2 is installed and the server offers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ...core.contracts.errors import ModelError
from .failures import explain_cut, late, refused_credentials
from .options import Transport
from .scrub import Scrubber
from .wire import Endpoint, LargeError, LeanWire, Reply, Wire, require_packages, too_large, within

if TYPE_CHECKING:
    import httpx


def make_wire(endpoint: Endpoint, transport: Transport, scrub: Scrubber) -> Wire:
    """Return the client that a setting names."""
    return HttpxWire(endpoint, scrub) if transport == "httpx" else LeanWire(endpoint, scrub)


def require_client(adapter: str, extra: str, transport: Transport, packages: tuple[str, ...] = ()) -> None:
    """Refuse an adapter whose client, or one of whose further packages, is not installed.

    Raises:
        MissingExtraError: with the extra that installs it.
    """
    if transport == "httpx":
        require_packages("of endpoints with transport = 'httpx'", "httpx", ("httpx",))
    else:
        require_packages(adapter, extra, ("aiohttp",))
    require_packages(adapter, extra, packages)


class HttpxWire:
    """httpx with the endpoint's own headers."""

    def __init__(self, endpoint: Endpoint, scrub: Scrubber) -> None:
        self._endpoint, self._scrub = endpoint, scrub
        self._where, self._proxy = endpoint.where, endpoint.proxy
        self._client: httpx.AsyncClient | None = None

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a body; see `Wire`."""
        return await self.send("POST", path, body, headers)

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request of any method; see `Wire`."""
        import httpx

        client = self._client or self._open()
        url = self._endpoint.address + path
        failure: ModelError
        try:
            async with (
                asyncio.timeout(self._endpoint.timeout_seconds),
                client.stream(method, url, content=body, headers=headers) as response,
            ):
                if self._proxy is not None and response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
                    raise refused_credentials(self._proxy)
                data = await within(self._endpoint.most(path), response.aiter_bytes())
                return Reply(response.status_code, response.headers, data)
        except LargeError:
            failure = too_large(self._endpoint, path)
        except (TimeoutError, httpx.TimeoutException):
            failure = late(self._where, self._endpoint.timeout_seconds, self._proxy)
        except (OSError, httpx.HTTPError) as error:
            failure = explain_cut(error, self._where, self._scrub, self._proxy)
        # Raised out here, so that no foreign error with its request and headers hangs on to it.
        raise failure

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open(self) -> httpx.AsyncClient:
        import httpx

        trust = self._endpoint.certificates.context()
        proxy = None
        if self._proxy is not None:
            secure = self._proxy.url.lower().startswith("https:")
            proxy = httpx.Proxy(self._proxy.url, ssl_context=trust if secure else None)
        connections = self._endpoint.connections
        client = httpx.AsyncClient(
            headers=dict(self._endpoint.headers),
            verify=trust,
            http2=find_spec("h2") is not None,
            proxy=proxy,
            trust_env=False,
            follow_redirects=False,
            timeout=None,
            limits=httpx.Limits(
                max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=60
            ),
        )
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self._client = client
        return client
