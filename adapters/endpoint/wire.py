"""`Wire`: a JSON body goes to a path of an endpoint, and status, headers and bytes come back.

A wire retries nothing, follows no redirect, keeps no cookie, reads no reply of more than a set size, and ends in a
`Reply` or in a `ModelError`. What the bytes mean is for the adapter of a dialect to say. `LeanWire` is the default:
aiohttp with the headers of the endpoint and nothing else; `clients.HttpxWire` does the same with httpx.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from ...core.contracts.errors import MissingExtraError, ModelError, PermanentError
from .certificates import Certificates
from .failures import explain_cut, late, refused_credentials
from .proxies import Proxy, find_proxy
from .scrub import Scrubber

if TYPE_CHECKING:
    import aiohttp

    from .options import WireOptions

_IMAGES = 8
"""How many times as large as others a reply with an image may be."""


class Reply(NamedTuple):
    """The reply of an endpoint."""

    status: int
    headers: Mapping[str, str]
    """Looked up in lower case."""
    body: bytes


class LargeError(Exception):
    """A reply is larger than it may be."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Address and settings of an endpoint."""

    address: str
    """Without a closing slash."""
    headers: Mapping[str, str]
    """Those of every request, the key among them."""
    connections: int
    timeout_seconds: float
    reply_bytes: int
    """Maximum size of a reply without images, decompressed."""
    proxy_setting: str | None = None
    """The proxy of the settings; None: that of the environment, empty: none."""
    certificates: Certificates = Certificates()

    @classmethod
    def of(cls, options: WireOptions, address: str, headers: Mapping[str, str]) -> Endpoint:
        """Return the endpoint of a model's settings.

        Raises:
            UsageError: a file of certificates cannot be used.
        """
        options.certificates.check()
        return cls(
            address=address,
            headers=headers,
            connections=options.concurrency,
            timeout_seconds=options.timeout_seconds,
            reply_bytes=options.reply_mib << 20,
            proxy_setting=options.proxy,
            certificates=options.certificates,
        )

    def most(self, path: str) -> int:
        """Return the maximum size of a reply to a path."""
        return self.reply_bytes * (_IMAGES if path.startswith("/images") else 1)

    @property
    def where(self) -> str:
        """Return host and port, as errors call the endpoint."""
        return urlsplit(self.address).netloc

    @property
    def proxy(self) -> Proxy | None:
        """Return the proxy through which it is asked, as the settings or else the environment name it."""
        return find_proxy(self.address, self.proxy_setting)

    def __repr__(self) -> str:
        """Return the address only."""
        return f"Endpoint({self.address!r})"


class Wire(Protocol):
    """Sends a request and returns the reply."""

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a body to a path below the address, with further headers where a dialect signs each request.

        Raises:
            TransientError: no complete reply was received.
        """

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request of any method, as `post` does.

        Raises:
            TransientError: no complete reply was received.
        """

    async def aclose(self) -> None:
        """Close the connections."""


def require_packages(adapter: str, extra: str, packages: tuple[str, ...] = ("aiohttp",)) -> None:
    """Raise `MissingExtraError` unless the packages of an adapter are installed; imports none."""
    if any(find_spec(package) is None for package in packages):
        raise MissingExtraError(f"adapter {adapter!r}", extra)


class LeanWire:
    """aiohttp with the endpoint's own headers."""

    def __init__(self, endpoint: Endpoint, scrub: Scrubber) -> None:
        self._endpoint, self._where, self._scrub = endpoint, endpoint.where, scrub
        self._session: aiohttp.ClientSession | None = None
        self._proxy = endpoint.proxy

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a body; see `Wire`."""
        return await self.send("POST", path, body, headers)

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request of any method; see `Wire`."""
        session = self._session or self._open()
        failure: ModelError
        try:
            async with session.request(
                method,
                self._url(path),
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=None if self._proxy is None else self._proxy.url,
            ) as response:
                if self._proxy is not None and response.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
                    raise refused_credentials(self._proxy)
                body_read = await within(self._endpoint.most(path), response.content.iter_any())
                return Reply(response.status, response.headers, body_read)
        except LargeError:
            failure = too_large(self._endpoint, path)
        except TimeoutError:
            failure = late(self._where, self._endpoint.timeout_seconds, self._proxy)
        except OSError as error:
            failure = explain_cut(error, self._where, self._scrub, self._proxy)
        except self._foreign as error:
            failure = explain_cut(error, self._where, self._scrub, self._proxy)
        # Raised out here, so that no foreign error with its request and headers hangs on to it.
        raise failure

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _url(self, path: str) -> Any:
        whole = self._endpoint.address + path
        if "%" not in path:
            return whole
        from yarl import URL

        # A name that is written with % is sent as it is: a signature covers it.
        return URL(whole, encoded=True)

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        self._foreign: type[Exception] = aiohttp.ClientError
        urls = (self._endpoint.address, "" if self._proxy is None else self._proxy.url)
        secure = any(url.lower().startswith("https:") for url in urls)
        connector = aiohttp.TCPConnector(
            limit=self._endpoint.connections,
            ttl_dns_cache=300,
            keepalive_timeout=60,
            ssl=self._endpoint.certificates.context() if secure else True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._endpoint.headers,
            timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout_seconds),
        )
        return self._session


async def within(most: int, parts: AsyncIterator[bytes]) -> bytes:
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
