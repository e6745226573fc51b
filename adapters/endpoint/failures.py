"""Errors of an exchange that did not end in a reply: time-outs, names, certificates, cut connections, proxies."""

from __future__ import annotations

import re
import socket
import ssl
from http import HTTPStatus

from ...core.contracts.errors import AuthenticationError, ModelError, PermanentError, TransientError
from .proxies import Proxy
from .scrub import Scrubber

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
_CLIENT = re.compile(r"ALERT_(CERTIFICATE_REQUIRED|UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_|ACCESS_DENIED)")
"""Alerts with which a server refuses the certificate of a client, or the lack of one."""


def late(where: str, seconds: float, proxy: Proxy | None = None) -> TransientError:
    """Return the error of an answer that took too long."""
    return TransientError(
        f"{where}{_through(proxy)} did not answer within {seconds:g} s.", code="endpoint.timeout", proxy=_place(proxy)
    )


def explain_cut(error: BaseException, where: str, scrub: Scrubber, proxy: Proxy | None = None) -> ModelError:
    """Return the error of an interrupted exchange, with its reason in plain words."""
    chain = [error]
    while (cause := chain[-1].__cause__ or getattr(chain[-1], "os_error", None) or chain[-1].__context__) and (
        cause not in chain
    ):
        chain.append(cause)
    said = f"{type(error).__name__}: {scrub.text(str(error))}"
    names = {type(link).__name__ for link in chain}
    if proxy is not None and (found := _explain_proxy(chain, names, where, proxy)) is not None:
        return found
    if any(isinstance(link, socket.gaierror) for link in chain) or "ClientConnectorDNSError" in names:
        return TransientError(
            f"the host name in {where} cannot be resolved. Check base_url and the network.", code="endpoint.unreachable"
        )
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        mend = "Check base_url, the clock and the certificate authorities that are trusted (ca_bundle, SSL_CERT_FILE)."
        return PermanentError(f"the certificate of {where} is not trusted: {said}. {mend}", code="endpoint.certificate")
    if any(isinstance(link, ssl.SSLError) and _CLIENT.search(str(link)) for link in chain):
        mend = "Name a certificate that the server trusts with client_cert, and its key with client_key."
        return PermanentError(f"{where} does not accept this client: {said}. {mend}", code="endpoint.certificate")
    if any(isinstance(link, ssl.SSLError) for link in chain) or "ClientConnectorSSLError" in names:
        return TransientError(f"no secure connection to {where}: {said}", code="endpoint.certificate")
    if any(isinstance(link, ConnectionRefusedError) for link in chain):
        return TransientError(f"{where} refuses the connection. Is the server running?", code="endpoint.unreachable")
    cut = f"{where}{_through(proxy)} cut the connection before its answer was complete."
    told = cut if names & _CUT else f"no answer from {where}{_through(proxy)}: {said}"
    return TransientError(told, code="endpoint.connection", proxy=_place(proxy))


def _through(proxy: Proxy | None) -> str:
    """Name the proxy, which may be what failed: of a request that went to it, no more is known."""
    return "" if proxy is None else f", asked through the proxy {proxy.where},"


def _place(proxy: Proxy | None) -> str:
    return "" if proxy is None else proxy.where


def refused_credentials(proxy: Proxy) -> AuthenticationError:
    """Return the error of a proxy that asks for a user and a password, or refuses them."""
    return AuthenticationError(
        f"the proxy {proxy.where} answered 407: it wants a user and a password, or refuses those that it was given. "
        "Write them into its address: http://USER:PASSWORD@HOST:PORT.",
        code="proxy.credentials",
    )


def _explain_proxy(chain: list[BaseException], names: set[str], where: str, proxy: Proxy) -> ModelError | None:
    """Return the error of a proxy; None if the exchange failed behind it.

    Names are resolved, and connections made, for the proxy only: it does both for the endpoint.
    """
    if any(isinstance(link, socket.gaierror) for link in chain) or "ClientConnectorDNSError" in names:
        return TransientError(
            f"the host name of the proxy {proxy.where}, through which {where} is asked, cannot be resolved. Check "
            "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or exempt the host with NO_PROXY.",
            code="proxy.unreachable",
        )
    status = next((found for link in chain if (found := _status_of(link)) is not None), None)
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return refused_credentials(proxy)
    if status is not None:
        kind = TransientError if status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS else PermanentError
        return kind(
            f"the proxy {proxy.where} answered {status} when it was asked for {where}: it cannot reach it, or must "
            "not. Ask who runs the proxy, or exempt the host with NO_PROXY.",
            code="proxy.refused",
        )
    refused = any(isinstance(link, ConnectionRefusedError) for link in chain)
    if refused or names & {"ClientProxyConnectionError", "ConnectTimeout", "ConnectError"}:
        return TransientError(
            f"the proxy {proxy.where}, through which {where} is asked, does not answer. Is it running? Check "
            "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or exempt the host with NO_PROXY.",
            code="proxy.unreachable",
        )
    return None


def _status_of(link: BaseException) -> int | None:
    """Return the status with which a proxy refused a tunnel."""
    if type(link).__name__ == "ClientHttpProxyError":
        return int(getattr(link, "status", 0)) or None
    if type(link).__name__ == "ProxyError" and (found := re.match(r"\d{3}\b", str(link))):
        return int(found[0])
    return None
