"""`plan --time`: how long a study takes, from its first answers.

The run is begun under a small budget, so that these answers are kept and the run can be resumed. Of a local model, what
passes before the first batch (weights are loaded) is told apart from the pace after it. An endpoint is asked many at a
time, so that its first answers come together: its pace is that over all the time, and rather too slow, since it grows
while it is asked.
"""

from __future__ import annotations

import math
import time

import msgspec

from ..catalogue.study import Catalogue, Study
from ..contracts.errors import BudgetError
from ..store import Store
from .budget import Caps
from .counts import Counts
from .integrity.canary import QUESTIONS
from .plan import StagePlan
from .runs import RunOptions, execute

FIRST = 48
"""Requests that are asked: enough to fill the batches of a small model twice."""


class Timed(msgspec.Struct, frozen=True):
    """The pace of the first answers."""

    run: str
    """The run that was begun."""
    asked: int
    """Answers of the model; 0: every answer was stored, or none came."""
    start: float
    """Seconds before the first answers came."""
    rate: float | None
    """Answers per second after that, or over all where they came at once; None without an answer."""
    whole: bool
    """Whether nothing is left to ask."""

    def left(self, stage: StagePlan) -> float | None:
        """Return the seconds that the requests of a stage take that are not asked yet; None where it is not known."""
        rest = max(0, stage.requests - self.asked)
        return 0.0 if self.whole else None if self.rate is None else rest / self.rate

    def words(self, stage: StagePlan) -> str:
        """Return the estimate in words; `stage` is the plan from before these were asked."""
        if self.whole:
            return "Time: nothing is left to ask."
        left = self.left(stage)
        if left is None or self.rate is None:
            return f"Time: not known, since no answer came. Look at the run: prejudge resume {self.run}"
        pace = f"{self.rate:,.1f} a second" if self.rate >= 1 else f"one in {duration(1 / self.rate)}"
        first = f"the first {self.asked:,} answers came at {pace}, after {duration(self.start)}"
        later = "; the stages that follow are not in it" if stage.later else ""
        rest = max(0, stage.requests - self.asked)
        return f"Time: about {duration(left)} for the other {rest:,} requests of stage {stage.stage}{later} ({first})."


class _Clock:
    """Takes down when answers came."""

    def __init__(self) -> None:
        self.began, self.run = time.monotonic(), ""
        self.came: list[tuple[float, int]] = []

    def begin(self, run: str) -> None:
        self.run = run

    def stage(self, name: str, role: str, total: int) -> None:
        if not self.came:
            self.began = time.monotonic()

    def update(self, counts: Counts) -> None:
        if counts.asked and (not self.came or counts.asked > self.came[-1][1]):
            self.came.append((time.monotonic() - self.began, counts.asked))


async def time_first(
    catalogue: Catalogue, study: Study, store: Store, stage: StagePlan, command: str = "", first: int = FIRST
) -> Timed:
    """Ask the first requests of a study and return their pace.

    Args:
        catalogue: where the study is from.
        study: it, with a model for each role.
        store: where the answers are kept.
        stage: the plan of its first stage.
        command: the command line, for the manifest.
        first: how many requests are asked.

    Raises:
        UsageError: the study cannot be asked, as of a run.
    """
    clock, whole = _Clock(), False
    # A canary has its own questions, which come first.
    caps = Caps(requests=first + stage.canary * len(QUESTIONS))
    try:
        await execute(catalogue, study, store, RunOptions(caps=caps, command=command), clock)
        whole = True
    except BudgetError:
        pass
    remote = catalogue.adapter(study.roles[stage.role]).endpoint is not None
    return _timed(clock.run, clock.came, whole=whole, remote=remote)


def _timed(run: str, came: list[tuple[float, int]], *, whole: bool, remote: bool = False) -> Timed:
    if not came:
        return Timed(run, 0, 0.0, None, whole)
    (start, few), (end, asked) = came[0], came[-1]
    # Where all came at once nothing tells the loading from the asking.
    apart = not remote and asked > few and end > start
    rate = (asked - few) / (end - start) if apart else asked / max(end, 1e-9)
    return Timed(run, asked, start, rate, whole)


def duration(seconds: float) -> str:
    """Return a time in words, with two digits: `3.2 s`, `12 minutes`, `5.5 hours`, `2.1 days`."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{_two(seconds / size)} {name}"
    return f"{_two(seconds)} s"


def _two(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or math.isclose(value, round(value)) else f"{value:.1f}"
