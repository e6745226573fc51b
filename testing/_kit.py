"""The common base of the rules of adapters: the settings of a test class, and a new adapter for each rule."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, TypeVar

from ..core.contracts.adapter import Identity, ModelAdapter
from ..core.contracts.records import AnyRequest
from ._compare import Answer, close, plain

T = TypeVar("T")


class AdapterKit:
    """Set `make` and `requests`; the other settings are for unusual adapters."""

    make: ClassVar[Callable[[], ModelAdapter]]
    """Make the adapter, the same one at each call."""
    requests: ClassVar[Sequence[AnyRequest]]
    """Requests that it answers, of any operations."""
    tolerance: ClassVar[float] = 1e-6
    """Tolerance, absolute or relative, between the numbers of an answer alone and in a batch."""
    recipe: ClassVar[str | None] = None
    """Python code that binds `adapter` to the same adapter, to make it in another process."""
    others: ClassVar[Sequence[Callable[[], ModelAdapter]]] = ()
    """Makers of adapters that give other answers: another dtype, template or prompt. Each needs another identity."""
    same: ClassVar[Sequence[Callable[[], ModelAdapter]]] = ()
    """Makers of adapters that give the same answers: another device, batch size, time-out. One identity for all."""
    secrets: ClassVar[Sequence[str]] = ()
    """Environment variables with keys of the adapter, besides those whose name says that they hold a key."""
    blocked_seconds: ClassVar[float] = 0.25
    """Longest time in seconds that a call may block the event loop."""

    def _groups(self) -> list[list[AnyRequest]]:
        """Return the requests by kind, in the order in which they are asked."""
        assert self.requests, "set `requests`"
        by_kind: dict[type, list[AnyRequest]] = {}
        for request in self.requests:
            by_kind.setdefault(type(request), []).append(request)
        return list(by_kind.values())

    def _with(self, rule: Callable[[ModelAdapter], Awaitable[T]]) -> T:
        """Run a rule on a new adapter, and close the adapter."""

        async def run() -> T:
            adapter = type(self).make()
            try:
                return await rule(adapter)
            finally:
                await adapter.aclose()

        return asyncio.run(run())

    def _identity(self, make: Callable[[], ModelAdapter]) -> Identity:
        async def run() -> Identity:
            adapter = make()
            await adapter.aclose()
            return adapter.identity

        return asyncio.run(run())

    def _same(self, first: Answer, second: Answer, request: AnyRequest) -> None:
        same = close(plain(first), plain(second), self.tolerance)
        assert same, f"two answers to {request!r} differ:\n{first!r}\n{second!r}"
