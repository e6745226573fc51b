"""Two ways to send a request: `SdkWire`, the stack of the openai package, and `LeanWire`, a shorter one.

Both take address, key, organisation and headers from one `AsyncOpenAI` client, retry nothing, follow no redirect, and
end in the same `Reply` or the same `ModelError`. `LeanWire` hands the bytes straight to aiohttp and leaves out what
the package does per call: building a request object, walking pydantic models, telemetry headers.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from ...core.contracts.errors import MissingExtraError, ModelError, PermanentError, TransientError
from .errors import Reply, Scrubber

if TYPE_CHECKING:
    import aiohttp
    import httpx2
    from openai import AsyncOpenAI

_CUT = frozenset(
    {
        "ClientPayloadError",
        "ServerDisconnectedError",
        "ClientOSError",
        "RemoteProtocolError",
        "ReadError",
        "WriteError",
        "ConnectionResetError",
        "BrokenPipeError",
    }
)


_IMAGES = 8
"""How many times as large as others a reply with an image may be."""


class LargeError(Exception):
    """A reply is larger than it may be."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Address and settings of an endpoint."""

    address: str
    key: str | None
    organization: str | None
    project: str | None
    connections: int
    timeout_seconds: float
    reply_bytes: int
    """Maximum size of a reply without images, decompressed."""

    def most(self, path: str) -> int:
        """Return the maximum size of a reply to a path."""
        return self.reply_bytes * (_IMAGES if path.startswith("/images") else 1)

    @property
    def where(self) -> str:
        """Return host and port, as errors call the endpoint."""
        return urlsplit(self.address).netloc

    def __repr__(self) -> str:
        """Return the address only."""
        return f"Endpoint({self.address!r})"


class Wire(Protocol):
    """Sends a JSON body and returns the reply."""

    async def post(self, path: str, body: bytes) -> Reply:
        """Send a body to a path below the address.

        Raises:
            TransientError: no complete reply was received.
        """

    async def aclose(self) -> None:
        """Close the connections."""


def require_openai() -> None:
    """Raise `MissingExtraError` unless the openai package and aiohttp are installed; imports neither."""
    if any(find_spec(package) is None for package in ("openai", "aiohttp")):
        raise MissingExtraError("adapter 'openai'", "openai")


def make_wire(endpoint: Endpoint, transport: str, scrub: Scrubber) -> Wire:
    """Return the way to an endpoint."""
    return SdkWire(endpoint, scrub) if transport == "sdk" else LeanWire(endpoint, scrub)


def make_client(endpoint: Endpoint, **more: Any) -> AsyncOpenAI:
    """Return the package's client for an endpoint, with its retries off. Without a key it holds a placeholder."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=endpoint.key or "none",
        base_url=endpoint.address,
        organization=endpoint.organization,
        project=endpoint.project,
        timeout=endpoint.timeout_seconds,
        max_retries=0,
        **more,
    )


class SdkWire:
    """The openai package's own stack on its default transport."""

    def __init__(self, endpoint: Endpoint, scrub: Scrubber) -> None:
        import httpx2
        from openai import DefaultAsyncHttpxClient, Omit

        limits = httpx2.Limits(
            max_connections=endpoint.connections, max_keepalive_connections=endpoint.connections, keepalive_expiry=60
        )
        hooks = {"response": [self._read]}
        client = DefaultAsyncHttpxClient(limits=limits, follow_redirects=False, event_hooks=hooks)
        self._client, self._endpoint = make_client(endpoint, http_client=client), endpoint
        self._where, self._seconds, self._scrub = endpoint.where, endpoint.timeout_seconds, scrub
        self._options: Any = {} if endpoint.key is not None else {"headers": {"Authorization": Omit()}}

    async def post(self, path: str, body: bytes) -> Reply:
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
            failure = late(self._where, self._seconds)
        except APIConnectionError as error:
            failure = explain_cut(error.__cause__ or error, self._where, self._scrub)
        except LargeError:
            failure = too_large(self._endpoint, path)
        # Raised out here, so that no foreign error with its request and headers hangs on to it.
        if failure is not None:
            raise failure
        return Reply(response.status_code, response.headers, response.content)

    async def _read(self, response: httpx2.Response) -> None:
        """Read a reply before the package does, which would read one of any size."""
        path = response.request.url.path.removeprefix(urlsplit(self._endpoint.address).path)
        response._content = await _within(self._endpoint.most(path), response.aiter_bytes())

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


class LeanWire:
    """aiohttp with the openai package's address and headers."""

    def __init__(self, endpoint: Endpoint, scrub: Scrubber) -> None:
        self._client = make_client(endpoint)
        self._endpoint, self._where, self._scrub = endpoint, endpoint.where, scrub
        self._session: aiohttp.ClientSession | None = None
        self._proxy = _find_proxy(endpoint.address)

    async def post(self, path: str, body: bytes) -> Reply:
        """Send a body; see `Wire`."""
        session = self._session or self._open()
        failure: ModelError
        try:
            async with session.post(
                self._endpoint.address + path, data=body, allow_redirects=False, proxy=self._proxy
            ) as response:
                body_read = await _within(self._endpoint.most(path), response.content.iter_any())
                return Reply(response.status, response.headers, body_read)
        except LargeError:
            failure = too_large(self._endpoint, path)
        except TimeoutError:
            failure = late(self._where, self._endpoint.timeout_seconds)
        except OSError as error:
            failure = explain_cut(error, self._where, self._scrub)
        except self._foreign as error:
            failure = explain_cut(error, self._where, self._scrub)
        raise failure  # out here, for the same reason

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await self._client.close()

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        self._foreign: type[Exception] = aiohttp.ClientError
        secure = self._endpoint.address.startswith("https")
        connector = aiohttp.TCPConnector(
            limit=self._endpoint.connections, ttl_dns_cache=300, keepalive_timeout=60, ssl=_trust() if secure else True
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers(),
            timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout_seconds),
        )
        return self._session

    def _headers(self) -> dict[str, str]:
        """Return the package's headers without its telemetry."""
        auth = self._client.auth_headers if self._endpoint.key is not None else {}
        both = {**auth, **self._client.default_headers}
        return {
            name: value
            for name, value in both.items()
            if isinstance(value, str) and not name.lower().startswith("x-stainless")
        }


async def _within(most: int, parts: AsyncIterator[bytes]) -> bytes:
    """Join the parts of a reply.

    Raises:
        LargeError: they are longer than `most`.
    """
    kept, size = [], 0
    async for part in parts:
        kept.append(part)
        if (size := size + len(part)) > most:
            raise LargeError
    return b"".join(kept)


def too_large(endpoint: Endpoint, path: str) -> PermanentError:
    """Return the error of a reply that is too large."""
    return PermanentError(
        f"the reply of {endpoint.where} is larger than {endpoint.most(path) >> 20} MiB. Is base_url right? Allow more "
        "with the setting reply_mib.",
        code="endpoint.too-large",
    )


def late(where: str, seconds: float) -> TransientError:
    """Return the error of an answer that took too long."""
    return TransientError(f"{where} did not answer within {seconds:g} s.", code="endpoint.timeout")


def explain_cut(error: BaseException, where: str, scrub: Scrubber) -> ModelError:
    """Return the error of an interrupted exchange, with its reason in plain words."""
    chain = [error]
    while (cause := chain[-1].__cause__ or getattr(chain[-1], "os_error", None) or chain[-1].__context__) and (
        cause not in chain
    ):
        chain.append(cause)
    said = f"{type(error).__name__}: {scrub.text(str(error))}"
    names = {type(link).__name__ for link in chain}
    if any(isinstance(link, socket.gaierror) for link in chain) or "ClientConnectorDNSError" in names:
        return TransientError(
            f"the host name in {where} cannot be resolved. Check base_url and the network.", code="endpoint.unreachable"
        )
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        mend = "Check base_url, the clock and the certificate authorities that are trusted (SSL_CERT_FILE)."
        return PermanentError(f"the certificate of {where} is not trusted: {said}. {mend}", code="endpoint.certificate")
    if any(isinstance(link, ssl.SSLError) for link in chain) or "ClientConnectorSSLError" in names:
        return TransientError(f"no secure connection to {where}: {said}", code="endpoint.certificate")
    if any(isinstance(link, ConnectionRefusedError) for link in chain):
        return TransientError(f"{where} refuses the connection. Is the server running?", code="endpoint.unreachable")
    if names & _CUT:
        return TransientError(f"{where} cut the connection before its answer was complete.", code="endpoint.connection")
    return TransientError(f"no answer from {where}: {said}", code="endpoint.connection")


def _trust() -> ssl.SSLContext:
    """Use the certificates that the openai package trusts."""
    import httpx2

    return httpx2.create_ssl_context()


def _find_proxy(address: str) -> str | None:
    """Return the proxy the environment names for an address. aiohttp would also take passwords out of a .netrc."""
    parts = urlsplit(address)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
