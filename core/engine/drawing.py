"""`Drawing`: the calls of the canary. They belong to no trial: nothing is stored, all is paid for and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from ..contracts.errors import AuthenticationError, ModelError
from ..contracts.records import AnyRequest, AnyResponse, Generate
from .asking import Keyed
from .budget import Budget
from .calls import Calls
from .charging import Charges
from .integrity.canary import DRAWS, QUESTIONS, Watch
from .limiter import Limiter, Ticket
from .progress import Counts
from .retry import RetryPolicy
from .stopping import Stopping


@dataclass
class Drawing:
    """Asks the canary of a stage, once, in batches like other requests."""

    size: int
    """Requests of a batch."""
    key: Callable[[AnyRequest], Keyed]
    calls: Calls
    charges: Charges
    budget: Budget | None
    counts: Counts
    gate: Limiter
    policy: RetryPolicy
    stopping: Stopping
    enter: Callable[[int], Awaitable[Ticket]]
    """Waits for the limiter."""
    wait: Callable[[list[ModelError], int], float]
    """Seconds until errors are retried."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, watch: Watch, requests: Sequence[AnyRequest]) -> None:
        """Ask the canary, if it was not asked and one of these requests samples.

        Raises:
            BudgetError: no request of a trial would be left after it.
        """
        async with self._turn:
            if (like := watch.wants(requests)) is not None:
                self.stopping.refuse(await watch.ask(like, self._draw_within))

    async def _draw_within(self, requests: Sequence[Generate]) -> list[AnyResponse | ModelError]:
        """Draw, if the budget has room for that and for a question of the study afterwards."""
        if self.budget is not None:
            # Room for both questions is there before the first: a run that stopped in between would pay the first one
            # again at every resume, and never ask a question of the study.
            rounds = 1 if self.counts.canary else len(QUESTIONS)
            why = "the canary of a stage that samples, of up to two questions, and one question of the study need"
            self.budget.ensure_room(rounds * DRAWS + 1, why)
        return await self._draw(requests)

    async def _draw(self, requests: Sequence[Generate]) -> list[AnyResponse | ModelError]:
        keyed = [self.key(request) for request in requests]
        parts = [keyed[start : start + self.size] for start in range(0, len(keyed), self.size)]
        drawn = await asyncio.gather(*(self._draw_together(part) for part in parts), return_exceptions=True)
        answers: list[AnyResponse | ModelError] = []
        for part in drawn:
            if isinstance(part, BaseException):
                raise part
            answers.extend(part)
        self.stopping.refuse(next((a for a in answers if isinstance(a, AuthenticationError)), None))
        return answers

    async def _draw_together(self, asked: list[Keyed]) -> list[AnyResponse | ModelError]:
        answers: dict[bytes, AnyResponse | ModelError] = {}
        pending = asked
        for retries in count():
            hold = await self.charges.reserve(pending)
            sent, unsent = pending[: hold.requests], pending[hold.requests :]
            drawn, _ = await self.calls.ask(sent, await self.enter(len(sent)))
            answered = [(k, a) for k, a in zip(sent, drawn, strict=True) if not isinstance(a, ModelError)]
            self.charges.pay(Generate, hold, answered)
            self.counts.canary += len(sent)
            for _, answer in answered:
                self.counts.use(answer)
            answers |= {keyed.key: answer for keyed, answer in zip(sent, drawn, strict=True)}
            failed = [(k, a) for k, a in zip(sent, drawn, strict=True) if isinstance(a, ModelError)]
            again = [(k, a) for k, a in failed if self.policy.again(a, retries) and not self.gate.down]
            if again:
                await asyncio.sleep(self.wait([error for _, error in again], retries))
            pending = [keyed for keyed, _ in again] + unsent
            if not pending:
                break
        return [answers[keyed.key] for keyed in asked]
