"""OpenAI's Files and Batches API: chat completions or responses handed in as one file, and read back from two.

Written after the API's reference: at most 50,000 requests and 200 MB per file, 24 hours; answers are in the output
file, failures in the error file, also of a batch that expired or was cancelled, in any order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ...core.contracts.batch import (
    BatchCancelledError,
    BatchExpiredError,
    BatchFullError,
    BatchLimits,
    BatchLine,
    BatchState,
    BatchStatus,
)
from ...core.contracts.errors import ModelError
from ...core.contracts.records import AnyRequest, AnyResponse, Generate, Generation, Request
from ..endpoint.batches import Courier, EndpointBatches
from ..endpoint.wire import Reply

LIMITS = BatchLimits(items=50_000, bytes=200_000_000, hours=24)
PATH = "/v1/chat/completions"
MARK = "prejudge"
"""Name of the metadata that holds the mark."""
FULL = "token_limit_exceeded"
PAGE, PAGES = 100, 50
SHOWN = 3
_JSON = {"content-type": "application/json"}
STATES: dict[str, BatchState] = {"completed": "ended", "expired": "expired", "cancelled": "cancelled"}


class Fault(msgspec.Struct):
    """Why a batch failed, or a request of it."""

    code: str | None = None
    message: str | None = None
    line: int | None = None

    def words(self) -> str:
        """Return it as text."""
        place = "" if self.line is None else f"line {self.line}: "
        return f"{place}{self.message or self.code or 'no reason'}"


class Faults(msgspec.Struct):
    """All that is wrong with a file."""

    data: list[Fault] = []


class Tallied(msgspec.Struct):
    """How many requests there are, and have ended."""

    total: int = 0
    completed: int = 0
    failed: int = 0


class Told(msgspec.Struct):
    """A batch."""

    id: str
    status: str
    errors: Faults | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    created_at: float | None = None
    completed_at: float | None = None
    request_counts: Tallied | None = None
    metadata: dict[str, Any] | None = None

    def read(self) -> BatchStatus:
        """Return what it says."""
        faults = self.errors.data if self.errors is not None else []
        state: BatchState = STATES.get(self.status, "running")
        if self.status == "failed":
            state = "full" if any(fault.code == FULL for fault in faults) else "invalid"
        counts = self.request_counts or Tallied()
        return BatchStatus(
            id=self.id,
            state=state,
            mark=str((self.metadata or {}).get(MARK) or ""),
            items=counts.total,
            answered=counts.completed,
            failed=counts.failed,
            files=tuple(name for name in (self.output_file_id, self.error_file_id) if name),
            created=self.created_at,
            ended=self.completed_at,
            problem=" ".join(fault.words() for fault in faults[:SHOWN]),
        )


class Listed(msgspec.Struct):
    """A page of batches, the newest first."""

    data: list[Told] = []
    has_more: bool = False


class Uploaded(msgspec.Struct):
    """A file."""

    id: str


class Result(msgspec.Struct):
    """The answer to a request."""

    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw(b"{}")


class Line(msgspec.Struct):
    """A line of the output or the error file."""

    response: Result | None = None
    error: Fault | None = None


class OpenAIBatches(EndpointBatches):
    """Batches of chat completions of one model."""

    limits = LIMITS
    told = Told
    place = "/batches"

    def __init__(
        self,
        courier: Courier,
        body: Callable[[Generate], Awaitable[dict[str, Any]]],
        read: Callable[[Reply, Generate], Generation],
        path: str = PATH,
    ) -> None:
        """`body` makes the whole body of a single call to `path`, and `read` reads its reply."""
        super().__init__(courier, body, read)
        self._path, self._lines = path, msgspec.json.Decoder(Line)

    async def encode(self, name: str, request: AnyRequest) -> bytes:
        """Return the line of a request."""
        assert isinstance(request, Generate)
        body = await self._body(request)
        return msgspec.json.encode({"custom_id": name, "method": "POST", "url": self._path, "body": body})

    async def upload(self, mark: str, lines: Sequence[bytes]) -> str:
        """Upload a file."""
        made = await self._courier.send_file("/files", {"purpose": "batch"}, f"{mark}.jsonl", lines, Uploaded)
        return made.id

    async def submit(self, mark: str, file: str, lines: Sequence[bytes], kind: type[Request]) -> BatchStatus:
        """Start a batch."""
        body = {"input_file_id": file, "endpoint": self._path, "completion_window": "24h", "metadata": {MARK: mark}}
        try:
            return (await self._courier.ask("POST", "/batches", Told, body)).read()
        except ModelError as error:
            if FULL not in str(error):
                raise
            raise BatchFullError(str(error)) from None

    async def find(self, mark: str, since: float) -> list[BatchStatus]:
        """Return the batches with this mark."""
        found: list[BatchStatus] = []
        after = ""
        for _ in range(PAGES):
            page = await self._courier.ask("GET", f"/batches?limit={PAGE}{after}", Listed)
            found.extend(one for told in page.data if (one := told.read()).mark == mark)
            if not page.data or not page.has_more or (page.data[-1].created_at or since) < since:
                break
            after = f"&after={page.data[-1].id}"
        return found

    async def results(self, status: BatchStatus) -> list[BatchLine]:
        """Return the lines of both files."""
        parts = [await self._courier.lines(f"/files/{name}/content") for name in status.files]
        return [line for part in parts for line in part]

    def read(self, line: BatchLine, request: AnyRequest) -> AnyResponse:
        """Return what a line answers.

        Raises:
            ModelError: it answers nothing.
        """
        assert isinstance(request, Generate)
        found = self._lines.decode(line.body)
        if found.response is not None and found.response.status_code:
            return self._read(Reply(found.response.status_code, _JSON, bytes(found.response.body)), request)
        code = (found.error.code or "") if found.error is not None else ""
        told = found.error.words() if found.error is not None else "neither an answer nor an error"
        if "expired" in code:
            raise BatchExpiredError(told)
        if "cancel" in code:
            raise BatchCancelledError(told)
        body = msgspec.json.encode({"error": {"message": told, "code": code}})
        return self._read(Reply(500, _JSON, body), request)
