"""Which servers are trusted, and how this side proves who it is: one TLS context for every client."""

from __future__ import annotations

import platform
import ssl
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ...core.contracts.errors import UsageError


class Certificates(msgspec.Struct, frozen=True, kw_only=True):
    """Files of certificates that the settings name; None: those of the system, and no certificate of this side."""

    ca_bundle: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    def check(self) -> None:
        """Read the files.

        Raises:
            UsageError: a file cannot be used, or there is a key without a certificate.
        """
        if self.client_key is not None and self.client_cert is None:
            raise UsageError(
                "client_key is set without client_cert; name the certificate that the key belongs to.",
                code="options.conflict",
            )
        if self.ca_bundle is not None or self.client_cert is not None:
            self.context()

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a client.

        Without `ca_bundle`, it trusts what the system trusts, or what SSL_CERT_FILE and SSL_CERT_DIR name.

        Raises:
            UsageError: a file cannot be used.
        """
        context = self._trusting()
        if self.client_cert is None:
            return context
        key = None if self.client_key is None else str(Path(self.client_key).expanduser())
        try:
            # An encrypted key would ask for its password on the terminal.
            context.load_cert_chain(Path(self.client_cert).expanduser(), key, password=_refuse_password)
        except (OSError, ValueError) as error:
            file = self.client_cert if key is None else f"{self.client_cert}, {self.client_key}"
            raise _unusable(
                "client_cert", file, error, "a certificate with its key, both in PEM and the key not encrypted"
            ) from None
        return context

    def _trusting(self) -> ssl.SSLContext:
        if self.ca_bundle is not None:
            path = Path(self.ca_bundle).expanduser()
            try:
                return ssl.create_default_context(cafile=path)
            except (OSError, ValueError) as error:
                raise _unusable("ca_bundle", self.ca_bundle, error, "certificate authorities in PEM") from None
        if platform.system() in ("Windows", "Darwin") and find_spec("truststore") is not None:
            import truststore

            context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            return context
        return ssl.create_default_context()


def _refuse_password() -> str:
    raise ValueError("the key is encrypted")


def _unusable(option: str, file: str, error: Exception, wanted: str) -> UsageError:
    problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UsageError(
        f"{option} = {file!r} cannot be used: {problem}. It should be a file of {wanted}.",
        code="options.certificate",
        option=option,
    )
