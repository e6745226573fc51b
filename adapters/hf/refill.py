"""Write many answers at a time: one that is finished leaves its place to the next, where the model's state allows it.

Transformers has continuous batching of its own (5.23, `generate_batch`), which is not used: it draws with one generator
for whatever is in the batch, gives no alternatives, and knows neither stop texts nor images. An answer here never
depends on its batch: its noise depends on the request alone, and what belongs to others is masked.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ..shared.budget import Budget
from ..shared.sampling import Choice, pick
from ..shared.torch import Stopped

REFILL = 4
"""Places are taken anew when one part in so many is free, since to join costs a pass."""


class Row(Protocol):
    """An unfinished answer."""

    choice: Choice
    reason: str
    """Why it ended; empty while it is being written."""

    @property
    def step(self) -> int:
        """Number of the token that comes next."""


T = TypeVar("T")
R = TypeVar("R", bound=Row)


class _Queue(Generic[T]):
    """Tasks with their numbers; they are made when they are looked at, not before."""

    def __init__(self, tasks: Iterable[tuple[int, T]]) -> None:
        self._source, self._ahead = iter(tasks), deque[tuple[int, T]]()

    def at(self, place: int) -> tuple[int, T] | None:
        while len(self._ahead) <= place:
            one = next(self._source, None)
            if one is None:
                return None
            self._ahead.append(one)
        return self._ahead[place]

    def take(self, count: int) -> list[tuple[int, T]]:
        return [self._ahead.popleft() for _ in range(count)]

    def put_back(self, tasks: Sequence[tuple[int, T]]) -> None:
        self._ahead.extendleft(reversed(tasks))


class _Pool(Generic[T, R]):
    """The answers that are being written at a time."""

    def __init__(self) -> None:
        self.done: dict[int, R] = {}
        self.flying: list[tuple[int, T]] = []
        """Tasks whose rows are in memory, with their numbers."""
        self.most = 0
        """The most tokens that had room in memory at a time."""

    def tasks(self) -> list[T]:
        return [task for _, task in self.flying]


class Writer(ABC, Generic[T, R]):
    """Writes answers `R` to tasks `T`. A subclass says how a model begins and advances them."""

    budget: Budget
    refills: bool
    """Whether others may join a batch in its midst; otherwise batches stay whole."""

    def write_all(self, tasks: Iterable[tuple[int, T]], stop: threading.Event | None = None) -> dict[int, R | None]:
        """Answer numbered tasks, in about their order; None stands for one that did not fit into memory alone.

        Raises:
            Stopped: `stop` was set between two tokens.
        """
        import torch

        stop, queue = stop or threading.Event(), _Queue(tasks)
        found: dict[int, R | None] = {}
        with torch.inference_mode():
            while queue.at(0) is not None:
                pool = _Pool[T, R]()
                made = self.budget.attempt(partial(self._write, queue, pool, stop), partial(self._lesson, pool))
                # What was finished before memory ran out is kept; the others begin anew.
                found.update(pool.done)
                if made is None and len(pool.flying) == 1:
                    found[pool.flying[0][0]] = None
                elif made is None:
                    queue.put_back(pool.flying)
        return found

    def _write(self, queue: _Queue[T], pool: _Pool[T, R], stop: threading.Event) -> bool:
        """Write all, as many at a time as fit: others take the places of those that are finished."""
        import torch

        rows = list[R]()
        logits: Any = None
        state: Any = None
        freed = True
        while True:
            if stop.is_set():
                raise Stopped
            if freed and (taken := self._next(queue, pool.tasks())):
                new = queue.take(taken)
                pool.flying = [*pool.flying, *new]
                pool.most = max(pool.most, self._size(pool.tasks()))
                fresh, state = self._begin([task for _, task in new], state)
                logits = torch.cat([logits, fresh]) if rows else fresh
                rows += [self._row(task) for _, task in new]
            if not rows:
                return True
            tokens = pick(logits, [row.choice for row in rows], [row.step for row in rows])
            self._note(rows, tokens.tolist(), logits)
            pool.done.update((number, row) for (number, _), row in zip(pool.flying, rows, strict=True) if row.reason)
            live = [place for place, row in enumerate(rows) if not row.reason]
            if freed := len(live) < len(rows):
                rows, pool.flying = [rows[place] for place in live], [pool.flying[place] for place in live]
                if not rows:
                    logits = state = None
                    continue
                chosen = torch.tensor(live, device=tokens.device)
                tokens, state = tokens[chosen], self._take(state, chosen)
            logits, state = self._advance(state, tokens)

    def _next(self, queue: _Queue[T], flying: Sequence[T]) -> int:
        """Return how many of the queue are begun now, beside those in flight."""
        if flying and not self.refills:
            return 0
        taken, group = 0, list(flying)
        while (one := queue.at(taken)) is not None:
            group.append(one[1])
            if len(group) > 1 and not self._fit(group):
                break
            taken += 1
        return taken if one is None or taken >= max(1, len(flying) // REFILL) else 0

    def _lesson(self, pool: _Pool[T, R]) -> int:
        """Return the size of what did not fit, 0 where that was one row, or of what fitted."""
        if not pool.flying:
            return pool.most
        return self._size(pool.tasks()) if len(pool.flying) > 1 else 0

    def _fit(self, group: Sequence[T]) -> bool:
        """Return whether the last of several tasks may be in memory beside the others."""
        return self._size(group) <= self.budget.tokens

    @abstractmethod
    def _size(self, group: Sequence[T]) -> int:
        """Return what tasks in memory at a time count against the budget."""

    @abstractmethod
    def _row(self, task: T) -> R:
        """Return the answer, without a token."""

    @abstractmethod
    def _begin(self, tasks: Sequence[T], state: Any) -> tuple[Any, Any]:
        """Run prompts, and return the logits after them and a state that they have joined; None is a state of none."""

    @abstractmethod
    def _advance(self, state: Any, tokens: Any) -> tuple[Any, Any]:
        """Run one more token per row, and return the logits after it and the state."""

    @abstractmethod
    def _take(self, state: Any, rows: Any) -> Any:
        """Return the state of some of the rows."""

    @abstractmethod
    def _note(self, rows: Sequence[R], tokens: Sequence[int], logits: Any) -> None:
        """Append the chosen tokens, and check which answers are finished."""
