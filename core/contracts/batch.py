"""`BatchApi`: the batch interface of a provider, where many requests are handed in as one and answered within hours.

An adapter whose provider has one sets `ModelAdapter.batch_api`. What is asked in a batch has the key and the identity
of the same request asked alone, so both share their answers: the adapter makes the bodies and reads the answers with
the same functions. Nothing is retried inside: raise a `ModelError`, and the engine decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from .errors import ModelError, RateLimitError, TransientError
from .records import AnyRequest, AnyResponse, Request

BatchState = Literal["running", "ended", "expired", "cancelled", "invalid", "full", "missing"]
"""`running`: also while it is checked, finished or cancelled; `ended`: every item has a result; `expired`, `cancelled`:
it ended before, and some have one; `invalid`: the provider refused the whole file, and charges nothing; `full`: so
much is waiting already that it took none of it, and takes it later; `missing`: it knows no such batch."""


class BatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch of a provider may hold."""

    items: int
    bytes: int
    """Of all lines together."""
    hours: float = 24.0
    """Time after which the provider ends a batch."""


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says of a batch."""

    id: str
    """The provider's name of it."""
    state: BatchState
    mark: str = ""
    """The mark that it was submitted with; empty where the provider keeps none."""
    items: int = 0
    """Requests that the provider counted; 0 before it has."""
    answered: int = 0
    failed: int = 0
    """Requests that ended without an answer, as far as it counts them."""
    files: tuple[str, ...] = ()
    """What `results` reads: everything that the provider wrote, also of a batch that expired or was cancelled."""
    created: float | None = None
    ended: float | None = None
    """Seconds since 1970, as the provider says."""
    problem: str = ""
    """Why it is `invalid` or `full`."""


class BatchLine(NamedTuple):
    """One result."""

    name: str
    """The custom id; empty if it cannot be read."""
    body: bytes
    """The line."""


class BatchExpiredError(TransientError):
    """Report a request that the provider did not come to before the batch expired; it is not charged."""

    code = "batch.expired"


class BatchCancelledError(TransientError):
    """Report a request that was not asked because its batch was cancelled; it is not charged."""

    code = "batch.cancelled"


class BatchFullError(RateLimitError):
    """Report a provider that takes no more requests until others have ended."""

    code = "batch.full"


class BatchApi(Protocol):
    """The batch interface of one model."""

    @property
    def limits(self) -> BatchLimits:
        """Return what one batch may hold."""

    @property
    def takes(self) -> frozenset[type[Request]]:
        """Return the kinds of request that a batch may hold; all of one batch are of one kind."""

    async def encode(self, name: str, request: AnyRequest) -> bytes:
        """Return the line of a request, without a line break; `name` is its custom id, 64 hexadecimal digits."""

    async def upload(self, mark: str, lines: Sequence[bytes]) -> str:
        """Hand in the lines, and return the provider's name of the file; empty if it takes the lines with `submit`."""

    async def submit(self, mark: str, file: str, lines: Sequence[bytes], kind: type[Request]) -> BatchStatus:
        """Start a batch of a file, or of lines where `upload` gave no file.

        Raises:
            BatchFullError: it takes it later.
            TransientError: it is not known whether the provider has taken it. `find` will tell.
            ModelError: it has not.
        """

    async def find(self, mark: str, since: float) -> Sequence[BatchStatus]:
        """Return the batches with this mark; where marks are not kept, all that were created since a time."""

    async def status(self, batch: str) -> BatchStatus:
        """Return what the provider says of a batch; `missing` if it does not know it."""

    async def results(self, status: BatchStatus) -> Sequence[BatchLine]:
        """Return all results in any order, whatever ended the batch.

        Raises:
            TransientError: they were not received whole; they can be read again.
        """

    def read(self, line: BatchLine, request: AnyRequest) -> AnyResponse | ModelError:
        """Return what a line answers; `BatchExpiredError` and `BatchCancelledError` where it was not asked."""

    async def cancel(self, batch: str) -> None:
        """End a batch early. What was answered before stays readable and is charged."""
