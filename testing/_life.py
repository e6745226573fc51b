"""Rules about an adapter's lifetime: cancelling, closing, and the shared event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..core.contracts.adapter import ModelAdapter
from ._kit import AdapterKit

BEAT = 0.01


class LifeRules(AdapterKit):
    """Rules about the start, the calls and the end of an adapter."""

    def test_cancellation_leaves_it_usable(self) -> None:
        """Cancelling a call, early or late, does not change later calls."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                before = await adapter.answer(group)
                for delay in (0.0, 0.001, 0.02):
                    call = asyncio.ensure_future(adapter.answer(group))
                    await asyncio.sleep(delay)
                    call.cancel()
                    await asyncio.gather(call, return_exceptions=True)
                after = await adapter.answer(group)
                for request, first, second in zip(group, before, after, strict=True):
                    self._same(first, second, request)

        self._with(rule)

    def test_closing_ends_its_threads(self) -> None:
        """`aclose` may be called twice, also on an adapter that was never asked, and leaves no thread behind."""

        async def used(make: Callable[[], ModelAdapter]) -> None:
            idle, adapter = make(), make()
            try:
                await adapter.answer(self._groups()[0])
            finally:
                for each in (adapter, adapter, idle):
                    await each.aclose()

        with self._standing() as make:
            asyncio.run(used(make))  # The first use may start threads that a library keeps for good.
            before = set(threading.enumerate())
            asyncio.run(used(make))
            assert _in_time(lambda: not _threads_since(before)), f"threads still run: {_threads_since(before)}"

    def test_event_loop_is_not_blocked(self) -> None:
        """A slow model does not block the event loop."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                await adapter.answer(group[:1])  # Loading weights may import a library, which nothing can make async.
                # On a busy machine any single gap may be long; a call that blocks has one at each try.
                gaps = [await _longest_gap(adapter.answer([*group])) for _ in range(3)]
                assert min(gaps) < self.blocked_seconds, f"the event loop was blocked for {min(gaps):.2f} s"

        self._with(rule)


async def _longest_gap(call: Awaitable[Any]) -> float:
    """Wait for a call, and return the longest delay of a heartbeat in seconds."""
    longest, beating = 0.0, True

    async def beat() -> None:
        nonlocal longest
        while beating:
            began = time.perf_counter()
            await asyncio.sleep(BEAT)
            longest = max(longest, time.perf_counter() - began - BEAT)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    try:
        await call
    finally:
        beating = False
        await heart
    return longest


def _threads_since(before: set[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread not in before]


def _in_time(settled: Callable[[], bool], seconds: float = 3.0) -> bool:
    """Wait until a condition is true, and return whether it is."""
    end = time.monotonic() + seconds
    while not settled():
        if time.monotonic() > end:
            return False
        time.sleep(BEAT)
    return True
