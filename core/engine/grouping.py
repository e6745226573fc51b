"""`Grouped`: items that arrive during a call are combined in the next call.

Under load the groups grow; without load no item waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Grouped(Generic[T, R]):
    """One call for all waiting items."""

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
