"""`Watch`: the sequential test of whether a model answers at least half of the questions of a stage.

It may be looked at after every answer. Its bounds are those of `statistics.betting`: whatever the number of looks, the
share of a model's answered questions is outside its interval at any of them with 1 % probability at most, if the
prompts are asked in an order that does not depend on their answers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..statistics.betting import Bounds, Mean, bounds_of, evidence_of
from .answers import FitAnswer

LEVEL = 0.99
"""Of the interval of the share of answered questions."""
ENOUGH = 0.5
"""Share of answered questions below which a model cannot do the task."""
FIRST = 50
"""Most trials that are asked before the others."""
EVERY = 25
"""Prompts between two looks after the first ones: each look costs a pass over all before."""
THINNED, ONE_IN = 500, 10
"""Prompts after which every tenth is counted: all answers are read when the run is scored, and reading costs time."""
Verdict = Literal["goes on", "stops", "watch"]


class _Shares:
    """The answered prompts of one group, in the order in which they were asked."""

    def __init__(self) -> None:
        self.hits: list[float] = []

    def mean(self) -> Mean:
        """Return them as units of one answer."""
        sums = np.array(self.hits, dtype=np.float64)
        return Mean(sums=sums, sizes=np.ones(len(sums)), least=0.0, greatest=1.0, most=1.0, typical=1.0)

    def sides(self) -> tuple[bool, bool]:
        """Return whether the share is shown to be above `ENOUGH`, and below it."""
        if not self.hits:
            return False, False
        evidence = evidence_of(self.mean(), (ENOUGH,), steps=1)
        at = int(np.searchsorted(evidence.values, ENOUGH))
        wanted = np.log(2 / (1 - LEVEL))
        return bool(evidence.above[at] >= wanted), bool(evidence.below[at] >= wanted)


class Watch:
    """Counts the answers of a stage, each prompt once, and says whether its model can do the task.

    Example:
        >>> from prejudge.core.fitness import FitAnswer, Watch
        >>> watch = Watch()
        >>> for number in range(12):
        ...     watch.see(str(number).encode(), "", FitAnswer(status="unreadable"))
        >>> watch.verdict, watch.asked
        ('stops', 12)
    """

    def __init__(self) -> None:
        """Begin without an answer."""
        self._every = _Shares()
        self._groups: dict[str, _Shares] = {}
        self._prompts: set[bytes] = set()
        self._looked = 0
        self._verdict: Verdict = "watch"

    @property
    def asked(self) -> int:
        """Return the number of prompts that were counted."""
        return len(self._every.hits)

    @property
    def answered(self) -> int:
        """Return how many of them were answered."""
        return int(sum(self._every.hits))

    def wants(self, prompt: bytes) -> bool:
        """Return whether the answer to a prompt is counted: the first to each, and of a long run every tenth."""
        return prompt not in self._prompts and (self.asked < THINNED or prompt[-1] % ONE_IN == 0)

    def see(self, prompt: bytes, group: str, answer: FitAnswer) -> None:
        """Count an answer.

        Args:
            prompt: digest of what was asked; samples of a prompt share it, and count once.
            group: the group that it is about; empty: none.
            answer: what it says of fitness.
        """
        if prompt in self._prompts or not answer.counts:
            return
        self._prompts.add(prompt)
        for shares in (self._every, self._groups.setdefault(group, _Shares())):
            shares.hits.append(float(answer.answered))

    @property
    def verdict(self) -> Verdict:
        """Return whether to go on, to stop, or to watch on.

        It stops where the share of answered questions is below half by its interval, unless that of a group is above:
        a model that fails for one group only can do the task, and the difference is a finding.
        """
        if self.asked <= FIRST or self.asked - self._looked >= EVERY:
            self._looked = self.asked
            self._verdict = self._judge()
        return self._verdict

    def _judge(self) -> Verdict:
        above, below = self._every.sides()
        if not below:
            return "goes on" if above or self.asked >= FIRST else "watch"
        able = len(self._groups) > 1 and any(shares.sides() == (True, False) for shares in self._groups.values())
        return "goes on" if able else "stops"

    @property
    def bounds(self) -> Bounds:
        """Return the interval of the share of answered questions."""
        return bounds_of((self._every.mean(),), 1 - LEVEL)
