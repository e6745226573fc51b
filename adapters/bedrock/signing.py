"""Signatures of AWS (SigV4), by botocore with the credentials that it finds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.contracts.adapter import Worker
from ...core.contracts.errors import AuthenticationError, UsageError
from ..endpoint.scrub import Scrubber

_SERVICE = "bedrock"
_REGION = re.compile(r"[a-z0-9-]{1,40}", re.ASCII)
"""It becomes a part of the address."""
_SENT = frozenset({"authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"})


class Signer:
    """Signs requests. Credentials that expire are renewed, which may take long: signing is done off the event loop."""

    def __init__(self, address: str, region: str, session: Any, scrub: Scrubber) -> None:
        self._address, self._region, self._session, self._scrub = address, region, session, scrub
        self._worker = Worker("bedrock-signing")

    async def sign(self, path: str, body: bytes) -> Mapping[str, str]:
        """Return the headers that sign a request.

        Raises:
            AuthenticationError: there are no credentials, or they cannot be renewed.
        """
        return await self._worker.run(self._sign, path, body)

    def _sign(self, path: str, body: bytes) -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        problem = "there are none"
        try:
            credentials = self._session.get_credentials()
            if credentials is not None:
                frozen = credentials.get_frozen_credentials()
                for secret in (frozen.secret_key, frozen.token):
                    self._scrub.add(secret or "")
                headers = {"Content-Type": "application/json"}
                request = AWSRequest("POST", self._address + path, data=body, headers=headers)
                SigV4Auth(frozen, _SERVICE, self._region).add_auth(request)
                return {name: value for name, value in request.headers.items() if name.lower() in _SENT}
        except BotoCoreError as error:
            problem = type(error).__name__
        # Raised out here, so that nothing of the credentials hangs on to it.
        raise AuthenticationError(
            f"no AWS credentials to sign with ({problem}). Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile.",
            code="endpoint.key-missing",
        )

    def close(self) -> None:
        """End the thread."""
        self._worker.close()


def find_region(region: str | None, session: Any) -> str:
    """Return the region of the settings, or of AWS's own configuration.

    Raises:
        UsageError: none is named, or it is none.
    """
    found = region or session.get_config_variable("region")
    if not found:
        raise UsageError(
            "no AWS region is named. Set region, or the environment variable AWS_REGION.", code="options.missing"
        )
    if not _REGION.fullmatch(str(found)):
        raise UsageError(
            f"{found!r} is no AWS region; write it like eu-central-1.", code="options.value", name="region"
        )
    return str(found)


def open_session(profile: str | None) -> Any:
    """Return botocore's session.

    Raises:
        UsageError: there is no such profile.
    """
    import botocore.session
    from botocore.exceptions import BotoCoreError

    session = botocore.session.Session(profile=profile)
    problem = None
    try:
        session.get_scoped_config()
    except BotoCoreError:
        problem = f"AWS knows no profile {profile!r}, or its configuration cannot be read."
    if problem is not None:
        raise UsageError(problem, code="options.value")
    return session
