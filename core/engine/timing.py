"""`plan --time`: how long a study takes, from its first answers.

The run is begun under a small budget, so that these answers are kept and the run can be resumed. Until then its state
is `timed`, and `latest` does not mean it. Of a local model, what passes before the first batch (weights are loaded) is
told apart from the pace after it. An endpoint is asked many at a time, so that its first answers come together: its
pace is that over all the time, and rather too slow, since it grows while it is asked. Stages whose requests depend on
answers are asked in part as well (`later.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from ..catalogue.study import Catalogue, Study
from ..contracts.errors import BudgetError
from ..store import Store
from .budget import Caps
from .integrity.canary import QUESTIONS
from .later import Came, Clock, Grown, time_stages
from .plan import StagePlan
from .progress import Counts
from .runs import RunOptions, execute

FIRST = 48
"""Requests of a stage that are asked: enough to fill the batches of a small model twice."""


class Part(msgspec.Struct, frozen=True):
    """A stage: what is left to ask of it, and the pace of the answers that came."""

    grown: Grown
    asked: int = 0
    """Answers of the model; 0: every answer was stored, or none came."""
    start: float = 0.0
    """Seconds before the first answers came."""
    rate: float | None = None
    """Answers per second after that, or over all where they came at once; None without an answer."""

    @property
    def seconds(self) -> float | None:
        """Return how long the rest takes; None where it is not known."""
        left = self.grown.left
        return 0.0 if left == 0 else None if left is None or self.rate is None else left / self.rate

    @property
    def words(self) -> str:
        """Return the estimate, with what was measured and what was extrapolated."""
        stage, left, driver = self.grown.stage, self.grown.left, self.grown.driver
        based = f"{self.grown.seen:,} of {self.grown.of:,.0f} answers of stage {driver}"
        if left is None:
            return f"Time of stage {stage}: not known, since from {based} no request follows yet."
        if left == 0:
            return f"Time of stage {stage}: nothing is left to ask{f' by {based}' if driver else ''}."
        if self.seconds is None or self.rate is None:
            return f"Time of stage {stage}: not known, since no answer came."
        pace = f"{self.rate:,.1f} a second" if self.rate >= 1 else f"one in {duration(1 / self.rate)}"
        first = f"measured: {self.asked:,} answers at {pace}, after {duration(self.start)}"
        number = f"some {left:,.0f} requests" if driver else f"the other {left:,.0f} requests"
        guess = f"; extrapolated: their number, from {based}" if driver else ""
        return f"Time: about {duration(self.seconds)} for {number} of stage {stage} ({first}{guess})."


class Timed(msgspec.Struct, frozen=True):
    """How long the rest of a study takes."""

    run: str
    """The run that was begun."""
    whole: bool
    """Whether nothing is left to ask."""
    parts: tuple[Part, ...] = ()
    """By stage."""

    def lines(self) -> Iterator[str]:
        """Yield the estimate in words."""
        if self.whole:
            yield "Time: nothing is left to ask."
            return
        yield from (part.words for part in self.parts)
        durations = [part.seconds for part in self.parts if part.seconds is not None]
        if not durations:
            yield f"Look at the run: prejudge resume {self.run}"
        elif len(self.parts) > 1:
            others = ", ".join(part.grown.stage for part in self.parts if part.seconds is None)
            yield f"In all about {duration(sum(durations))}{f', without stage {others}' if others else ''}."


class _Stages:
    """Takes down when the answers of each stage came."""

    def __init__(self) -> None:
        self.run = ""
        self.came: dict[str, Came] = {}
        self._clock = Clock([])

    def begin(self, run: str) -> None:
        self.run = run

    def stage(self, name: str, role: str, total: int) -> None:
        self._clock = Clock(self.came.setdefault(name, []))

    def update(self, counts: Counts) -> None:
        self._clock.update(counts)


async def time_first(
    catalogue: Catalogue, study: Study, store: Store, stage: StagePlan, command: str = "", first: int = FIRST
) -> Timed:
    """Ask the first requests of each stage of a study and return their pace.

    Args:
        catalogue: where the study is from.
        study: it, with a model for each role.
        store: where the answers are kept.
        stage: the plan of its first stage.
        command: the command line, for the manifest.
        first: how many requests of a stage are asked.

    Raises:
        UsageError: the study cannot be asked, as of a run.
    """
    clock = _Stages()
    # A canary has its own questions, which come first.
    caps = Caps(requests=first + stage.canary * len(QUESTIONS))
    try:
        await execute(catalogue, study, store, RunOptions(caps=caps, command=command, timing=True), clock)
        return Timed(clock.run, whole=True)
    except BudgetError:
        pass
    if stage.later:
        measured = {name: came for name, came in clock.came.items() if came}
        grown = await time_stages(catalogue, study, store, clock.run, measured, first)
    else:
        came = clock.came.get(stage.stage, [])
        remote = catalogue.adapter(study.roles[stage.role]).endpoint is not None
        asked = came[-1][1] if came else 0
        grown = [Grown(stage=stage.stage, left=max(0, stage.requests - asked), came=came, remote=remote)]
    return Timed(clock.run, whole=False, parts=tuple(part_of(growth) for growth in grown))


def part_of(grown: Grown) -> Part:
    """Return the pace of a stage."""
    if not grown.came:
        return Part(grown)
    (start, few), (end, asked) = grown.came[0], grown.came[-1]
    # Where all came at once nothing tells the loading from the asking.
    separable = not grown.remote and asked > few and end > start
    rate = (asked - few) / (end - start) if separable else asked / max(end, 1e-9)
    return Part(grown, asked, start, rate)


def duration(seconds: float) -> str:
    """Return a time in words, with two digits: `3.2 s`, `12 minutes`, `5.5 hours`, `2.1 days`."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{_two(seconds / size)} {name}"
    return f"{_two(seconds)} s"


def _two(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or math.isclose(value, round(value)) else f"{value:.1f}"
