"""`Commits`: answered calls on their way into the store, in groups.

A call's slot is free once it is answered; a kill loses the answers that are not yet committed. So a commit begins when
half as many calls as slots are waiting for it, when nothing else is on the way, or soon after the first; and while
more calls than slots are uncommitted, none is sent (`room`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
LINGER_SECONDS = 0.05
"""Longest wait of an answered call for others to be committed with it."""


class Commits(Generic[T]):
    """Answered calls, of which one group at a time is committed."""

    def __init__(
        self, slots: int, commit: Callable[[list[T]], Awaitable[None]], fail: Callable[[Exception], None]
    ) -> None:
        """`fail` receives the error of a commit; nothing more is committed after it."""
        self._slots, self._commit, self._fail = slots, commit, fail
        self._waiting: list[T] = []
        self._soon = self._broken = False
        self._uncommitted = 0
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._freed: asyncio.Future[None] | None = None

    def put(self, call: T, *, soon: bool) -> None:
        """Receive an answered call; with `soon`, no others are waited for."""
        self._waiting.append(call)
        self._uncommitted += 1
        self._soon = self._soon or soon
        if self._task is None:
            self._look()

    @property
    def full(self) -> bool:
        """Return whether more calls than slots are uncommitted."""
        return self._uncommitted > self._slots

    async def room(self) -> None:
        """Wait while more calls than slots are uncommitted."""
        while self.full:
            # All who wait share one future, which is cancelled with any of them: the workers of a stage end together.
            if self._freed is None or self._freed.done():
                self._freed = asyncio.get_running_loop().create_future()
            await self._freed

    async def finish(self) -> None:
        """Commit all calls that were received."""
        self._soon = True
        while self._task is not None or (self._waiting and not self._broken):
            if self._task is None:
                self._look()
            if self._task is not None:
                await self._task

    def _look(self) -> None:
        if self._broken or not self._waiting:
            return
        if self._soon or 2 * len(self._waiting) >= self._slots:
            self._begin()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._soon = False
        taken, self._waiting = self._waiting, []
        self._task = asyncio.create_task(self._perform(taken))

    async def _perform(self, taken: list[T]) -> None:
        try:
            await self._commit(taken)
            self._uncommitted -= len(taken)
        except Exception as error:
            self._broken = True
            self._fail(error)
        finally:
            self._task = None
            freed, self._freed = self._freed, None
            if freed is not None and not freed.done():
                freed.set_result(None)
        self._look()
