"""What is asked: keyed requests, the batches they are sent in, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from ..contracts.errors import ModelError
from ..contracts.records import AnyRequest, AnyResponse
from ..store import Found, NewExchange
from .budget import Hold


class Keyed(msgspec.Struct, frozen=True, gc=False):
    """A request with its canonical encoding and key."""

    key: bytes
    request: AnyRequest
    encoded: bytes


Settle = Callable[[Sequence[Keyed], Mapping[bytes, str] | None], Awaitable[dict[bytes, Found]]]
"""Returns an answer per key, see `Scheduler.settle`."""


class Asking:
    """Requests that one caller waits for, until each is answered or has failed finally."""

    def __init__(
        self,
        requests: Sequence[Keyed],
        size: int,
        found: dict[bytes, Found],
        affinity: Callable[[AnyRequest], str] | None = None,
    ) -> None:
        """Group requests of one kind by what they share (`affinity`), then by length.

        The longest request determines the cost of a batch.
        """
        self.found = found
        """The answers; committed."""
        self._kinds: dict[type, list[Keyed]] = {}
        for keyed in _ordered(requests, affinity):
            self._kinds.setdefault(type(keyed.request), []).append(keyed)
        self._size = size
        self.left = sum(-(-len(kind) // size) for kind in self._kinds.values())
        """Batches that are not finished."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watched: dict[bytes, list[asyncio.Future[Found | None]]] = {}

    def jobs(self) -> Iterator[Job]:
        """Yield the batches, each made when it is sent: the garbage collector walks through all that are there."""
        for kind in self._kinds.values():
            for start in range(0, len(kind), self._size):
                batch = kind[start : start + self._size]
                yield Job(self, batch, batch)

    @property
    def over(self) -> bool:
        """Return whether nobody waits any more."""
        return self.done.done()

    def watch(self, key: bytes) -> asyncio.Future[Found | None]:
        """Return the answer to a key for another caller; None if it fails."""
        watcher: asyncio.Future[Found | None] = asyncio.get_running_loop().create_future()
        self._watched.setdefault(key, []).append(watcher)
        return watcher

    def land(self, key: bytes, answer: Found) -> None:
        """Receive an answer."""
        self.found[key] = answer
        if self._watched:
            _deliver(self._watched.pop(key, ()), answer)

    def close(self) -> None:
        """Tell the other callers that no answer will come; otherwise they would wait forever."""
        for watchers in self._watched.values():
            _deliver(watchers, None)


def _ordered(requests: Sequence[Keyed], affinity: Callable[[AnyRequest], str] | None) -> Iterable[Keyed]:
    """Return requests by length; those that share something are where the shortest of them is."""
    by_length = sorted(requests, key=lambda keyed: len(keyed.encoded))
    if affinity is None:
        return by_length
    groups: dict[str | bytes, list[Keyed]] = {}
    for keyed in by_length:
        groups.setdefault(affinity(keyed.request) or keyed.key, []).append(keyed)
    return chain.from_iterable(groups.values())


def _deliver(watchers: Sequence[asyncio.Future[Found | None]], answer: Found | None) -> None:
    for watcher in watchers:
        if not watcher.done():
            watcher.set_result(answer)


class Job(msgspec.Struct, eq=False):
    """A batch that is asked until every request is answered or has failed finally."""

    asking: Asking
    batch: list[Keyed]
    pending: list[Keyed]
    retries: int = 0
    polls: int = 0


Failed = list[tuple[Keyed, ModelError]]


class Call(msgspec.Struct, eq=False):
    """A call that was answered, and is not yet committed."""

    job: Job
    held: Hold
    answered: list[tuple[Keyed, AnyResponse]] = []
    rows: list[NewExchange] = []
    """The answers as they are stored."""
    failed: Failed = []
    rest: list[Keyed] = []
    """What of the job is asked later: failures that may pass, requests that were not sent."""
    again: int = 0
    """Number of the failed requests that are asked again."""
    wait: float = 0.0
    """Seconds until they are."""
