"""Write answers about images: the questions of a batch may be about several, and the next ones join as others end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...shared.budget import Budget
from ..refill import Writer
from .answers import Answer, Wish
from .cache import Stems, Strip
from .groups import Asked
from .model import Loaded

ABREAST, ABREAST_CPU = 8, 2
"""Stems in a batch at most: each of its questions is compared with all of them, in vain with all but one. Eight cost a
processor more than they save, two save it a fifth where answers differ in length."""


class Question(NamedTuple):
    """A prompt to be answered."""

    asked: Asked
    wish: Wish
    group: int
    """Equal numbers follow the same stem."""

    @property
    def ids(self) -> tuple[int, ...]:
        """Tokens behind the stem."""
        return self.asked.prompt.ids[self.asked.prompt.stem :]


class VLMWriter(Writer[Question, Answer]):
    """A vision-language model that answers questions."""

    def __init__(self, loaded: Loaded, stems: Stems, budget: Budget, most_rows: Callable[[], int]) -> None:
        self._loaded, self._stems, self.budget, self._most_rows = loaded, stems, budget, most_rows
        self.refills = True
        self._abreast = ABREAST_CPU if loaded.device == "cpu" else ABREAST

    def _fit(self, group: Sequence[Question]) -> bool:
        stems, most = len({question.group for question in group}), self._abreast if self.refills else 1
        return super()._fit(group) and len(group) <= self._most_rows() and stems <= most

    def _size(self, group: Sequence[Question]) -> int:
        # Repeats of a prompt are encoded once; each takes room for its answer only.
        prompts = {(one.group, one.ids): len(one.ids) for one in group}
        repeats = len(group) - len(prompts)
        return sum(prompts.values()) + repeats * min(group[-1].wish.most, len(group[-1].ids))

    def _row(self, task: Question) -> Answer:
        return Answer(task.asked.prompt.ids, task.wish)

    def _begin(self, tasks: Sequence[Question], state: Strip | None) -> tuple[Any, Strip]:
        strip = state or Strip(self._loaded)
        logits = strip.open([(one.group, self._stems.find(*one.asked), one.ids) for one in tasks])
        return logits[:, -1], strip

    def _advance(self, state: Strip, tokens: Any) -> tuple[Any, Strip]:
        return state.step(tokens), state

    def _take(self, state: Strip, rows: Any) -> Strip:
        state.take(rows)
        return state

    def _note(self, rows: Sequence[Answer], tokens: Sequence[int], logits: Any) -> None:
        for row, token, scores in zip(rows, tokens, logits, strict=True):
            row.add(token, scores, self._loaded.encoder)
