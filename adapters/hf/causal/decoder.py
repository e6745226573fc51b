"""Continue prompts token by token: in batches padded in front, each distinct prompt run once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...shared.budget import Budget
from ...shared.sampling import Choice
from ..refill import Writer
from .model import FAILURES, Head
from .rows import State, join

Tops = list[tuple[int, float]]


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
        self.task, self.choice = task, task.choice
        self.ids: list[int] = []
        self.tops: list[Tops] = []
        self.reason = ""
        """`stop` or `length`; empty while it is being written."""
        self.broken = False
        """Whether the model gave logits that are not numbers."""

    @property
    def step(self) -> int:
        """Number of the token that comes next."""
        return len(self.ids)


class Decoder(Writer[Task, Written]):
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
        order = sorted(range(len(tasks)), key=lambda number: (len(tasks[number].ids), tasks[number].most))
        found = self.write_all(((number, tasks[number]) for number in order), stop)
        return [found[number] for number in range(len(tasks))]

    def _fit(self, group: Sequence[Task]) -> bool:
        return super()._fit(group) and (self._pads or len(group[-1].ids) == len(group[0].ids))

    def _size(self, group: Sequence[Task]) -> int:
        return len(group) * max((len(task.ids) + task.most for task in group), default=0)

    def _row(self, task: Task) -> Written:
        return Written(task)

    def _begin(self, tasks: Sequence[Task], state: State | None) -> tuple[Any, State]:
        logits, begun = self._open([task.ids for task in tasks])
        return logits, begun if state is None else join(state, begun)

    def _take(self, state: State, rows: Any) -> State:
        return state.take(rows)

    def _open(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Any, State]:
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
                _, state = self._open([short[:4]])
                _, state = self._advance(state, token)
                joined, _ = self._advance(join(state, self._open([long])[1]), token.repeat(2))
                alone = [self._advance(self._open([ids])[1], token)[0] for ids in ((*short[:4], 3), long)]
                return self._head.same(joined, torch.cat(alone))
        except FAILURES:
            return False

    def _two(self, *prompts: tuple[int, ...]) -> Any:
        """Return the logits of two steps, [step, prompt, vocabulary]."""
        import torch

        logits, state = self._open(prompts)
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
