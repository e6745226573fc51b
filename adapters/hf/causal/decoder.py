"""Continue prompts token by token: in batches padded in front, each distinct prompt run once.

An answer never depends on its batch: the noise depends on the request alone, and padding is masked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...shared.sampling import Choice, pick
from ...shared.torch import Stopped, attempt
from .model import FAILURES, Head, take_rows

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
        self.task = task
        self.ids: list[int] = []
        self.tops: list[Tops] = []
        self.reason = ""
        """`stop` or `length`; empty while it is being written."""
        self.broken = False
        """Whether the model gave logits that are not numbers."""


class Decoder:
    """A causal language model that continues prompts."""

    def __init__(self, head: Head, ends: frozenset[int], budget: int | None = None, *, caches: bool = True) -> None:
        self._head, self._ends, self._caches = head, ends, caches
        self._budget = budget or head.budget
        self._pads = True
        self._pads = self._padding_is_exact()

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
                taken = self._next_chunk([tasks[number] for number in left])
                chunk = [tasks[number] for number in left[:taken]]
                written = attempt(partial(self._write_chunk, chunk, stop), self._head.device)
                if written is None and taken > 1:
                    self._budget = max(1, self._width(tasks[left[taken - 1]]) * taken // 2)
                    continue
                answers: Sequence[Written | None] = written or [None]
                found.update(zip(left[:taken], answers, strict=True))
                left = left[taken:]
        return [found[number] for number in range(len(tasks))]

    def _next_chunk(self, tasks: Sequence[Task]) -> int:
        """Return how many of the tasks, the shortest first, are written together."""
        taken = 1
        while taken < len(tasks):
            if self._width(tasks[taken]) * (taken + 1) > self._budget:
                break
            if not self._pads and len(tasks[taken].ids) != len(tasks[0].ids):
                break
            taken += 1
        return taken

    def _width(self, task: Task) -> int:
        return len(task.ids) + task.most

    def _write_chunk(self, tasks: Sequence[Task], stop: threading.Event) -> list[Written]:
        import torch

        written = [Written(task) for task in tasks]
        logits, state = self._begin([task.ids for task in tasks])
        open_rows, step = list(written), 0
        while True:
            if stop.is_set():
                raise Stopped
            tokens = pick(logits, [row.task.choice for row in open_rows], step)
            self._note(open_rows, tokens.tolist(), logits)
            rows = [row for row, answer in enumerate(open_rows) if not answer.reason]
            if not rows:
                return written
            if len(rows) < len(open_rows):
                chosen = torch.tensor(rows, device=self._head.device)
                open_rows, tokens, state = [open_rows[row] for row in rows], tokens[chosen], state.take(chosen)
            logits, state, step = *self._advance(state, tokens), step + 1

    def _begin(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Any, _State]:
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
        return logits[rows], _State(ids, mask, past).take(rows)

    def _advance(self, state: _State, tokens: Any) -> tuple[Any, _State]:
        """Run one more token per row."""
        import torch

        ids = torch.cat([state.ids, tokens[:, None]], 1)
        mask = None if state.mask is None else torch.cat([state.mask, torch.ones_like(tokens[:, None])], 1)
        new = ids[:, -1:] if self._caches else ids
        wanted = torch.arange(new.shape[1] - 1, new.numel(), new.shape[1], device=new.device)
        padding = _padding(mask, new.shape[1])
        logits, past = self._head.run(new, wanted, state.past, keep=self._caches, padding=padding)
        return logits, _State(ids, mask, past)

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

    def _two(self, *prompts: tuple[int, ...]) -> Any:
        """Return the logits of two steps, [step, prompt, vocabulary]."""
        import torch

        logits, state = self._begin(prompts)
        after, _ = self._advance(state, logits.new_full((len(prompts),), 3, dtype=torch.int64))
        return torch.stack([logits, after])


class _State(NamedTuple):
    """The state from which the next token is computed."""

    ids: Any
    mask: Any
    past: Any

    def take(self, rows: Any) -> _State:
        """Return some of the rows, each as often as named."""
        mask = None if self.mask is None else self.mask[rows]
        return _State(self.ids[rows], mask, take_rows(self.past, rows))


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
