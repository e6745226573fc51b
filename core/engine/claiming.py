"""`RunClaims`: async access to the claims of a run on the keys that it asks.

If only one process uses the store, a claim is an entry in memory. Otherwise waiting claims are combined in one
transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from ..contracts.errors import StoreError
from ..store import Store
from ..store.claims import Claimed, Claims
from .limiter import Limiters

TICK_SECONDS = 0.25
"""Seconds between two checks for new processes."""

T = TypeVar("T")
R = TypeVar("R")
Run = Callable[..., Awaitable[Any]]


class RunClaims:
    """The claims of one run."""

    def __init__(self, run: Run, store: Store, limiters: Limiters | None = None) -> None:
        """`run` runs a blocking call in the store's thread; `limiters` are shared with processes beside this one."""
        self._run, self._limiters = run, limiters
        self._claims = Claims(store, () if limiters is None else limiters.endpoints)
        self._held: set[bytes] = set()
        self._released: set[bytes] = set()
        self._shared = False
        self._joined: asyncio.Task[None] | None = None
        self._ticks: asyncio.Task[None] | None = None
        self._written: Grouped[list[bytes], Claimed] = Grouped(self._take, self._give_back)

    @property
    def worker(self) -> int:
        """Return the number of this process in the store."""
        return self._claims.id

    async def join(self) -> None:
        """Register this process, before it looks for answers: all later requests are claimed."""
        if self._joined is None:
            self._joined = asyncio.create_task(self._join())
        await asyncio.shield(self._joined)

    async def claim(self, keys: Iterable[bytes]) -> Claimed:
        """Claim keys; another process is asking those that are in neither part of the result."""
        await self.join()
        keys = list(keys)
        return Claimed({}, frozenset(keys)) if self.hold(keys) else await self._written.add(keys)

    def hold(self, keys: Iterable[bytes]) -> bool:
        """Claim keys in memory, if this process has joined and no other uses the store; return whether it is so."""
        if self._ticks is None:
            return False
        if self._ticks.done():
            self._ticks.result()
        # What was halted may have lost its claims: the store tells.
        if self._shared or self._claims.stale:
            return False
        self._held.update(keys)
        return True

    def release(self, keys: Iterable[bytes]) -> None:
        """Release keys that were answered or given up."""
        ended = self._held.intersection(keys)
        self._held -= ended
        if self._shared:
            self._released |= ended

    async def aclose(self) -> None:
        """Release all claims."""
        for task in (self._joined, self._ticks):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._written.cancel()
        if self._joined is not None:
            with contextlib.suppress(StoreError):  # the other processes remove a worker that did not leave
                await self._run(self._claims.leave)

    async def _join(self) -> None:
        await self._run(self._claims.join)
        # Earlier processes ask without claims until they have seen this one.
        while await self._run(self._claims.is_awaited):
            await asyncio.sleep(TICK_SECONDS / 5)
        self._shared = await self._run(self._claims.batches_open)
        await self._beat()
        self._ticks = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self._beat()

    async def _beat(self) -> None:
        newest, parts = await self._run(self._claims.others)
        # From now on every claim is written; earlier claims are in `_held`, and a new process learns of them. This
        # stays true when the others end: a key may have been looked up before they answered it.
        self._shared = self._shared or newest > 0 or self._claims.lost
        released, self._released = self._released, set()
        # A new process waits until it is met; so what an endpoint allows is never exceeded by all of them together.
        met = newest if self._limiters is None or self._limiters.divide(parts) else 0
        await self._run(self._claims.beat, met, frozenset(self._held), released)
        self._shared = self._shared or self._claims.lost

    async def _take(self, parts: list[list[bytes]]) -> list[Claimed]:
        released, self._released = self._released, set()
        keys = list(dict.fromkeys(key for part in parts for key in part))
        claimed: Claimed = await self._run(self._claims.take, keys, released)
        self._held |= claimed.mine
        return [
            Claimed({key: claimed.found[key] for key in part if key in claimed.found}, claimed.mine.intersection(part))
            for part in parts
        ]

    def _give_back(self, claimed: Claimed) -> None:
        """Release keys for which no caller waits any more."""
        self.release(claimed.mine)


class Grouped(Generic[T, R]):
    """One call for all waiting items: those that arrive during a call are combined in the next one.

    Under load the groups grow; without load no item waits.
    """

    def __init__(
        self, perform: Callable[[list[T]], Awaitable[Sequence[R]]], unwanted: Callable[[R], None] | None = None
    ) -> None:
        """`call` returns a result per item; `unwanted` receives results for which no caller waits any more."""
        self._perform, self._unwanted = perform, unwanted
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, item: T) -> R:
        """Wait for the result of an item. Raises the exception of its group's call."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await done

    async def finish(self) -> None:
        """Wait for all items that were added."""
        if self._task is not None:
            await self._task

    async def cancel(self) -> None:
        """Cancel the current call."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            try:
                results = await self._perform([item for item, _ in taken])
            except Exception as error:
                for _, done in taken:
                    if not done.done():
                        done.set_exception(error)
                continue
            for result, (_, done) in zip(results, taken, strict=True):
                if not done.done():
                    done.set_result(result)
                elif self._unwanted is not None:
                    self._unwanted(result)
