"""Adapters whose blocking calls run in sequence in a separate thread, and stop if the caller no longer waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ...core.contracts.adapter import ModelAdapter, Worker

Q = TypeVar("Q")
R = TypeVar("R")


class ThreadedAdapter(ModelAdapter):
    """Base of adapters that hold weights in this process. A subclass calls `_start` once and writes `_free`."""

    _worker: Worker | None = None

    def _start(self, name: str) -> None:
        self._worker = Worker(name)

    async def _run(self, call: Callable[[Sequence[Q], threading.Event], list[R]], requests: Sequence[Q]) -> list[R]:
        """Run `call(requests, stop)` in the thread; cancelling sets `stop`, which the call checks between steps."""
        worker, stop = self._open_worker(), threading.Event()
        try:
            return await worker.run(call, requests, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    def _open_worker(self) -> Worker:
        if self._worker is None:
            raise RuntimeError("this adapter is closed")
        return self._worker

    async def aclose(self) -> None:
        """Free the weights and end the thread, after any current call."""
        if self._worker is not None:
            worker, self._worker = self._worker, None
            await worker.run(self._free)
            worker.close()

    def _free(self) -> None:
        """Free the weights. Runs in the thread."""
        raise NotImplementedError
