"""Adapters that stay open from test to test: weights are loaded once for all the questions of several tests.

What a model answers must not depend on what it was asked before, so sharing is one more test of it. A test that
changes the code, or listens to what loading says, has adapters of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from prejudge.core.contracts.adapter import ModelAdapter, Services

MOST = 4
"""Adapters that are open at a time."""
ALONE = {"monkeypatch", "capsys", "capfd", "caplog", "recwarn"}
"""Fixtures of tests that have adapters of their own."""


class Pool:
    """The open adapters, the one used last at the end."""

    def __init__(self) -> None:
        self._shares = False
        self._open: dict[str, ModelAdapter] = {}

    def begin(self, fixtures: Iterable[str]) -> None:
        """Hear which fixtures the next test uses."""
        self._shares = not ALONE & set(fixtures)

    def ask(self, kind: Any, options: Any, requests: Sequence[Any], services: Services | None = None) -> list[Any]:
        """Return the answers of an adapter of this kind with these options."""
        return asyncio.run(self._ask(kind(options), repr(options), requests, services))

    def close(self) -> None:
        """Close all adapters."""
        asyncio.run(self._close(0))

    async def _ask(
        self, made: ModelAdapter, options: str, requests: Sequence[Any], services: Services | None
    ) -> list[Any]:
        # One is made in any case: it refuses what is to be refused, and its identity tells changed files from others.
        # Weights load at the first answer.
        key = f"{options} {made.identity}"
        adapter = self._open.pop(key, made) if self._shares else made
        if adapter is not made:
            await made.aclose()
        try:
            if services is not None:
                adapter.services = services
            answers = list(await adapter.answer(requests))
            if self._shares:
                self._open[key] = adapter
            return answers
        finally:
            if key not in self._open:
                await adapter.aclose()
            await self._close(MOST)

    async def _close(self, but: int) -> None:
        while len(self._open) > but:
            await self._open.pop(next(iter(self._open))).aclose()


POOL = Pool()
