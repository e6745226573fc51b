"""What is asked: keyed requests, the batches they are sent in, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..contracts.records import AnyRequest
from ..store import Found


class Keyed(NamedTuple):
    """A request with its canonical encoding and key."""

    key: bytes
    request: AnyRequest
    encoded: bytes


@dataclass(eq=False)
class Asking:
    """Requests that one caller waits for, until each is answered or has failed finally."""

    found: dict[bytes, Found]
    """The answers; committed."""
    left: int
    """Batches that are not finished."""
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    _watched: dict[bytes, list[asyncio.Future[Found | None]]] = field(default_factory=dict)

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
            _tell(self._watched.pop(key, ()), answer)

    def close(self) -> None:
        """Tell the other callers that no answer will come; otherwise they would wait forever."""
        for watchers in self._watched.values():
            _tell(watchers, None)


def _tell(watchers: Sequence[asyncio.Future[Found | None]], answer: Found | None) -> None:
    for watcher in watchers:
        if not watcher.done():
            watcher.set_result(answer)


@dataclass(eq=False, slots=True)
class Job:
    """A batch that is asked until every request is answered or has failed finally."""

    asking: Asking
    batch: list[Keyed]
    pending: list[Keyed]
    retries: int = 0
    polls: int = 0


def batches(missing: Sequence[Keyed], size: int) -> list[list[Keyed]]:
    """Group requests of the same kind and similar length, because the longest request determines a batch's cost."""
    by_kind: dict[type, list[Keyed]] = {}
    for keyed in sorted(missing, key=lambda keyed: len(keyed.encoded)):
        by_kind.setdefault(type(keyed.request), []).append(keyed)
    return [kind[i : i + size] for kind in by_kind.values() for i in range(0, len(kind), size)]
