"""Continue prompts token by token: in batches padded in front, each distinct prompt run once.

An answer that is finished leaves its place to the next prompt, where the model's cache allows it. Transformers has
continuous batching of its own (5.23, `generate_batch`), which is not used: it draws with one generator for whatever is
in the batch, gives no alternatives, and knows no stop texts. An answer here never depends on its batch: the noise
depends on the request alone, and padding is masked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...shared.budget import Budget
from ...shared.sampling import Choice, pick
from ...shared.torch import Stopped
from .model import FAILURES, Head
from .rows import State, join

Tops = list[tuple[int, float]]
REFILL = 4
"""Places are taken anew when one part in so many is free."""


class Task(NamedTuple):
    """A prompt to be continued."""

    ids: tuple[int, ...]
    choice: Choice
    most: int
    """Maximum number of tokens of the answer."""
    ended: Callable[[list[int]], bool] | None = None
    """Whether the answer so far holds a stop string."""
    top: int = 0
    """Alternatives to report per token."""
    opened: bool = False
    """Whether the prompt opened the model's reasoning."""


class Written:
    """An unfinished answer."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.ids: list[int] = []
        self.tops: list[Tops] = []
        self.reason = ""
        """`stop` or `length`; empty while it is being written."""
        self.broken = False
        """Whether the model gave logits that are not numbers."""


class _Pool:
    """The answers that are being written at a time."""

    def __init__(self) -> None:
        self.done: dict[int, Written] = {}
        self.flying: list[int] = []
        """Numbers of the tasks whose rows are in memory."""
        self.most = 0
        """The most tokens that had room in memory at a time."""


class Decoder:
    """A causal language model that continues prompts."""

    def __init__(self, head: Head, ends: frozenset[int], budget: int | None = None, *, caches: bool = True) -> None:
        self._head, self._ends, self._caches = head, ends, caches
        self.budget = Budget(head.device, head.budget, budget)
        self._pads = True
        self._pads = self._padding_is_exact()
        self.refills = caches and self._pads and self._joining_is_exact()

    def write(self, tasks: Sequence[Task], stop: threading.Event | None = None) -> list[Written | None]:
        """Continue all; None stands for a task that did not fit into memory alone.

        Raises:
            Stopped: `stop` was set between two tokens.
        """
        import torch

        stop = stop or threading.Event()
        left = sorted(range(len(tasks)), key=lambda number: (len(tasks[number].ids), tasks[number].most))
        found: dict[int, Written | None] = {}
        with torch.inference_mode():
            while left:
                pool = _Pool()
                run = partial(self._write_all, tasks, left, pool, stop)
                made = self.budget.attempt(run, partial(self._lesson, tasks, pool))
                # What was finished before memory ran out is kept; the others begin anew.
                found.update(pool.done)
                if made is None and len(pool.flying) == 1:
                    found[pool.flying[0]] = None
                left = [number for number in left if number not in found]
        return [found[number] for number in range(len(tasks))]

    def _write_all(self, tasks: Sequence[Task], left: Sequence[int], pool: _Pool, stop: threading.Event) -> bool:
        """Write all, as many at a time as fit: others take the places of those that are finished."""
        import torch

        queue, rows = list(left), list[Written]()
        logits: Any = None
        state: Any = None
        freed = True
        while True:
            if stop.is_set():
                raise Stopped
            if freed and (taken := self._next(tasks, queue, pool.flying)):
                new, queue = queue[:taken], queue[taken:]
                pool.flying = [*pool.flying, *new]
                pool.most = max(pool.most, self._size([tasks[number] for number in pool.flying]))
                fresh, joining = self._begin([tasks[number].ids for number in new])
                logits = torch.cat([logits, fresh]) if rows else fresh
                state = join(state, joining) if rows else joining
                rows += [Written(tasks[number]) for number in new]
            if not rows:
                return True
            tokens = pick(logits, [row.task.choice for row in rows], [len(row.ids) for row in rows])
            self._note(rows, tokens.tolist(), logits)
            pool.done.update((number, row) for number, row in zip(pool.flying, rows, strict=True) if row.reason)
            live = [place for place, row in enumerate(rows) if not row.reason]
            if freed := len(live) < len(rows):
                rows, pool.flying = [rows[place] for place in live], [pool.flying[place] for place in live]
                if not rows:
                    continue
                chosen = torch.tensor(live, device=self._head.device)
                tokens, state = tokens[chosen], state.take(chosen)
            logits, state = self._advance(state, tokens)

    def _next(self, tasks: Sequence[Task], queue: Sequence[int], flying: Sequence[int]) -> int:
        """Return how many of the queue, the shortest first, are begun now, beside those in flight."""
        if flying and not self.refills:
            return 0
        taken, group = 0, [tasks[number] for number in flying]
        while taken < len(queue):
            group.append(tasks[queue[taken]])
            alike = self._pads or len(group[-1].ids) == len(group[0].ids)
            if len(group) > 1 and (self._size(group) > self.budget.tokens or not alike):
                break
            taken += 1
        # To join costs a copy of all keys and values.
        return taken if taken >= min(len(queue), max(1, len(flying) // REFILL)) else 0

    def _size(self, group: Sequence[Task]) -> int:
        return len(group) * max((len(task.ids) + task.most for task in group), default=0)

    def _lesson(self, tasks: Sequence[Task], pool: _Pool) -> int:
        """Return the size of what did not fit, 0 where that was one row, or of what fitted."""
        if not pool.flying:
            return pool.most
        return self._size([tasks[number] for number in pool.flying]) if len(pool.flying) > 1 else 0

    def _begin(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Any, State]:
        """Run each distinct prompt once, and return the logits after it and the state, one row per prompt."""
        import torch

        distinct = list(dict.fromkeys(prompts))
        width, device = max(map(len, distinct)), self._head.device
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in distinct], device=device)
        mask = None
        if any(len(prompt) < width for prompt in distinct):
            mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in distinct], device=device)
        wanted = torch.arange(width - 1, ids.numel(), width, device=device)
        logits, past = self._head.run(ids, wanted, keep=self._caches, padding=_padding(mask, width))
        where = {prompt: row for row, prompt in enumerate(distinct)}
        rows = torch.tensor([where[prompt] for prompt in prompts], device=device)
        return logits[rows], State(ids, mask, past).take(rows)

    def _advance(self, state: State, tokens: Any) -> tuple[Any, State]:
        """Run one more token per row."""
        import torch

        ids = torch.cat([state.ids, tokens[:, None]], 1)
        mask = None if state.mask is None else torch.cat([state.mask, torch.ones_like(tokens[:, None])], 1)
        new = ids[:, -1:] if self._caches else ids
        wanted = torch.arange(new.shape[1] - 1, new.numel(), new.shape[1], device=new.device)
        padding = _padding(mask, new.shape[1])
        logits, past = self._head.run(new, wanted, state.past, keep=self._caches, padding=padding)
        return logits, State(ids, mask, past)

    def _note(self, rows: Sequence[Written], tokens: Sequence[int], logits: Any) -> None:
        """Append the chosen tokens, and check which answers are finished."""
        broken = logits.max(-1).values.isfinite().logical_not().tolist()
        tops = _tops(logits, max(row.task.top for row in rows))
        for number, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            row.ids.append(token)
            row.broken = broken[number]
            if row.task.top:
                row.tops.append(tops[number][: row.task.top])
            if token in self._ends or row.broken or (row.task.ended and row.task.ended(row.ids)):
                row.reason = "stop"
            elif len(row.ids) >= row.task.most:
                row.reason = "length"

    def _padding_is_exact(self) -> bool:
        """Test whether padding in front changes this model's logits."""
        import torch

        long, short = (tuple(row) for row in self._head.trial(2, 9).tolist())
        try:
            with torch.inference_mode():
                return self._head.same(self._two(short[:5], long)[:, 0], self._two(short[:5], short[:5])[:, 0])
        except FAILURES:
            return False

    def _joining_is_exact(self) -> bool:
        """Test whether rows that join others have the logits they have alone."""
        import torch

        long, short = (tuple(row) for row in self._head.trial(2, 9).tolist())
        token = torch.tensor([3], device=self._head.device)
        try:
            with torch.inference_mode():
                _, state = self._begin([short[:4]])
                _, state = self._advance(state, token)
                joined, _ = self._advance(join(state, self._begin([long])[1]), token.repeat(2))
                alone = [self._advance(self._begin([ids])[1], token)[0] for ids in ((*short[:4], 3), long)]
                return self._head.same(joined, torch.cat(alone))
        except FAILURES:
            return False

    def _two(self, *prompts: tuple[int, ...]) -> Any:
        """Return the logits of two steps, [step, prompt, vocabulary]."""
        import torch

        logits, state = self._begin(prompts)
        after, _ = self._advance(state, logits.new_full((len(prompts),), 3, dtype=torch.int64))
        return torch.stack([logits, after])


def _padding(mask: Any, width: int) -> tuple[Any, Any] | None:
    """Return the attention mask, and the position numbers of its last `width` tokens."""
    if mask is None:
        return None
    return mask, (mask.cumsum(-1) - 1).clamp(min=0)[:, -width:]


def _tops(logits: Any, count: int) -> list[Tops]:
    """Return the likeliest tokens with their log-probabilities, [row, alternative]."""
    if not count:
        return []
    best = logits.log_softmax(-1).topk(min(count, logits.shape[-1]), -1)
    return [list(zip(*row, strict=True)) for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
