"""Anthropic's Message Batches: messages handed in as one list, and read back line by line.

Written after the API's reference: at most 100,000 requests and 256 MB, 24 hours, results for 29 days in any order. The
API keeps no mark with a batch, so one whose name was never received is known by its time and its number of requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

import msgspec

from ...core.contracts.batch import (
    BatchCancelledError,
    BatchExpiredError,
    BatchLimits,
    BatchLine,
    BatchState,
    BatchStatus,
)
from ...core.contracts.errors import TransientError
from ...core.contracts.records import AnyRequest, AnyResponse, Generate, Request
from ..endpoint.batches import EndpointBatches
from ..endpoint.wire import Reply

LIMITS = BatchLimits(items=100_000, bytes=255_000_000, hours=24)
"""A megabyte is left for what stands around the lines."""
PATH = "/v1/messages/batches"
PAGE, PAGES = 100, 50
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that a single call with this error has; any other error is the server's."""


class Tallied(msgspec.Struct):
    """How many requests are in which state."""

    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0


class Told(msgspec.Struct):
    """A batch."""

    id: str
    processing_status: str
    request_counts: Tallied
    created_at: str | None = None
    ended_at: str | None = None
    cancel_initiated_at: str | None = None

    def read(self) -> BatchStatus:
        """Return what it says."""
        counts = self.request_counts
        state: BatchState = "running"
        if self.processing_status == "ended":
            state = "cancelled" if self.cancel_initiated_at else "expired" if counts.expired else "ended"
        return BatchStatus(
            id=self.id,
            state=state,
            items=counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired,
            answered=counts.succeeded,
            failed=counts.errored,
            files=(f"{PATH}/{self.id}/results",) if state != "running" else (),
            created=_seconds(self.created_at),
            ended=_seconds(self.ended_at),
        )


class Listed(msgspec.Struct):
    """A page of batches, the newest first."""

    data: list[Told] = []
    has_more: bool = False


class Result(msgspec.Struct):
    """What became of a request."""

    type: str = ""
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class Line(msgspec.Struct):
    """A line of the results."""

    result: Result


class Fault(msgspec.Struct):
    """What went wrong."""

    type: str = ""


class Faulty(msgspec.Struct):
    """The body of an error."""

    error: Fault | None = None


class AnthropicBatches(EndpointBatches):
    """Batches of messages of one model."""

    limits = LIMITS
    told = Told
    place = PATH
    lines: ClassVar[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)

    async def encode(self, name: str, request: AnyRequest) -> bytes:
        """Return the line of a request."""
        assert isinstance(request, Generate)
        return msgspec.json.encode({"custom_id": name, "params": await self._body(request)})

    async def upload(self, mark: str, lines: Sequence[bytes]) -> str:
        """Do nothing: the lines go with `submit`."""
        return ""

    async def submit(self, mark: str, file: str, lines: Sequence[bytes], kind: type[Request]) -> BatchStatus:
        """Start a batch."""
        body = {"requests": [msgspec.Raw(line) for line in lines]}
        return (await self._courier.ask("POST", PATH, Told, body)).read()

    async def find(self, mark: str, since: float) -> list[BatchStatus]:
        """Return all batches that were created since a time."""
        found: list[BatchStatus] = []
        after = ""
        for _ in range(PAGES):
            page = await self._courier.ask("GET", f"{PATH}?limit={PAGE}{after}", Listed)
            read = [told.read() for told in page.data]
            found.extend(status for status in read if (status.created or since) >= since)
            if not read or not page.has_more or (read[-1].created or since) < since:
                break
            after = f"&after_id={read[-1].id}"
        return found

    async def results(self, status: BatchStatus) -> list[BatchLine]:
        """Return all lines."""
        parts = [await self._courier.lines(path) for path in status.files]
        return [line for part in parts for line in part]

    def read(self, line: BatchLine, request: AnyRequest) -> AnyResponse:
        """Return what a line answers.

        Raises:
            ModelError: it answers nothing.
        """
        assert isinstance(request, Generate)
        found = self.lines.decode(line.body).result
        headers = {"content-type": "application/json"}
        match found.type:
            case "succeeded":
                return self._read(Reply(200, headers, bytes(found.message)), request)
            case "errored":
                body = bytes(found.error)
                fault = msgspec.json.decode(body, type=Faulty | None) or Faulty()
                status = STATUS.get(fault.error.type if fault.error is not None else "", 500)
                return self._read(Reply(status, headers, body), request)
            case "expired":
                raise BatchExpiredError("the provider did not come to this request in time")
            case "canceled":
                raise BatchCancelledError("this request was not asked")
        raise TransientError(f"the result is of the unknown type {found.type!r}", code="endpoint.no-answer")


def _seconds(time: str | None) -> float | None:
    try:
        return None if time is None else datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None
