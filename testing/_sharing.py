"""Rules about what requests share: nothing, one after another or at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random

from ..core.contracts.adapter import ModelAdapter
from ..core.contracts.records import AnyRequest, Generate
from ._compare import Answer
from ._kit import AdapterKit, ask, run, settle
from .chaos.http import Call, Reply

SLOWEST_SECONDS = 0.1


class SharingRules(AdapterKit):
    """Rules that compare the answers of a used or busy adapter with those of a new one."""

    def test_nothing_is_kept_from_another_request(self) -> None:
        """An answer does not depend on what was asked before: no setting, message or answer is kept."""

        async def rule(adapter: ModelAdapter, request: AnyRequest, before: Sequence[AnyRequest]) -> Answer:
            for other in before:
                await settle(adapter, other)
            return await settle(adapter, request)

        with self._answering() as make:
            for group in self._various():
                for request in (group[0], group[-1]):
                    others = [other for other in group if other != request]
                    first = run(make, lambda adapter, request=request: rule(adapter, request, ()))  # type: ignore[misc]
                    later = run(make, lambda adapter, request=request, others=others: rule(adapter, request, others))  # type: ignore[misc]
                    self._same(first, later, request)

    def test_concurrent_requests_share_nothing(self) -> None:
        """Requests that are answered at the same time have the answers that they have alone."""

        async def together(adapter: ModelAdapter, group: Sequence[AnyRequest]) -> list[Answer]:
            return list(await asyncio.gather(*(settle(adapter, request) for request in group)))

        self._compare(together)

    def test_order_is_kept_if_replies_overtake(self) -> None:
        """The answers of a batch are in its order, also if a later request is answered first."""

        async def batch(adapter: ModelAdapter, group: Sequence[AnyRequest]) -> list[Answer]:
            return list(await adapter.answer(group))

        self._compare(batch)

    def _compare(self, way: Callable[[ModelAdapter, Sequence[AnyRequest]], Awaitable[list[Answer]]]) -> None:
        """Compare the answers to all requests of a kind, asked in some way, with those of one after another."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._various():
                alone = [await settle(adapter, request) for request in group]
                for request, first, second in zip(group, alone, await way(adapter, group), strict=True):
                    self._same(first, second, request)

        with self._answering() as make:
            run(make, rule)

    def _various(self) -> list[list[AnyRequest]]:
        """Return the requests by kind; for an endpoint also some of which each has a setting that the others lack."""
        if type(self).at is None:
            return self._groups()
        settings: tuple[dict[str, object], ...] = (
            {"temperature": 0.4375},
            {"top_p": 0.8125},
            {"max_tokens": 1237},
            {"stop": ("kit-stop",)},
            {"seed": 420691},
            {"system": "kit-system"},
        )
        asked = [ask(f"kit-question {n}", **setting) for n, setting in enumerate(settings)]  # type: ignore[arg-type]
        return [
            [*group, *asked, ask("kit-last")] if isinstance(group[0], Generate) else group for group in self._groups()
        ]

    @contextmanager
    def _answering(self) -> Iterator[Callable[[], ModelAdapter]]:
        """Return how to make the adapter; an endpoint answers it in another order than it is asked."""
        if type(self).at is None:
            with self._standing() as make:
                yield make
            return
        draw = Random(0)

        def reply(call: Call) -> Reply:
            return replace(self.speaks.echo(call), delay=SLOWEST_SECONDS * draw.random())

        with self._endpoint(reply) as (_, make):
            yield make
