"""Errors of an exchange that did not end in a reply: time-outs, names, certificates, cut connections, proxies."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ...core.contracts.errors import ModelError, PermanentError, TransientError
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


def find_proxy(address: str) -> str | None:
    """Return the proxy the environment names for an address. aiohttp would also take passwords out of a .netrc."""
    parts = urlsplit(address)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
