"""What a stage has asked and received so far (`Counts`), and the interface by which a run reports it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from ..contracts.records import AnyResponse
from .reading import as_read

SCHEMA = 1
"""Version of `as_record`; increased when a field is removed or changes its meaning."""


@dataclass
class Counts:
    """Counts of the requests of a stage."""

    trials: int = 0
    cached: int = 0
    """Keys with an answer in the store."""
    asked: int = 0
    """Keys answered by the model, committed."""
    failed: int = 0
    refused: int = 0
    """Refused or filtered answers: those asked now as they are read, stored ones as their provider signalled it."""
    retried: int = 0
    missed: int = 0
    """Keys of a `replay` without an answer."""
    input_tokens: int | None = 0
    """As counted by the model; None if it does not count them. The same holds for the next fields."""
    output_tokens: int | None = 0
    cached_tokens: int = 0
    """Of the input tokens, those that the endpoint says it had cached."""
    cost: float | None = None
    """US dollars; None if no price is known."""
    pace: float | None = None
    """Requests per second allowed by the endpoint's limiter; None if no limit was met."""
    canary: int = 0
    """Draws of the canary (`integrity/canary.py`): their tokens and cost are counted, and they belong to no trial."""
    estimated: int = 0
    """Answers without a credible token count, charged as estimated; counted where there is a price or a budget."""
    waiting_until: float | None = None
    """Unix time of the end of the last long wait; None if there was none."""
    batched: int = 0
    """Requests that are with the provider in batches."""

    def add(self, answers: Iterable[AnyResponse]) -> None:
        """Count answers of the model, which are committed."""
        read, written = self.input_tokens or 0, self.output_tokens or 0
        for answer in answers:
            usage = answer.usage
            self.asked += 1
            self.refused += as_read(answer).status != "ok"
            self.cached_tokens += cached_tokens(answer)
            read, written = read + usage.input_tokens, written + usage.output_tokens
        # Every request has input tokens, so answers without any are from a model that does not count tokens.
        self.input_tokens = read if read or not self.asked else None
        self.output_tokens = written if read or written or not self.asked else None

    def use(self, answer: AnyResponse) -> None:
        """Count the tokens of an answer that belongs to no trial."""
        self.cached_tokens += cached_tokens(answer)
        self.input_tokens = (self.input_tokens or 0) + answer.usage.input_tokens
        self.output_tokens = (self.output_tokens or 0) + answer.usage.output_tokens


def cached_tokens(answer: AnyResponse) -> int:
    """Return how many of an answer's input tokens the endpoint had cached; no more than there are."""
    return max(0, min(answer.usage.cached_tokens, answer.usage.input_tokens))


class Progress(Protocol):
    """Receiver of a run's progress, such as a terminal or a log."""

    def begin(self, run: str) -> None:
        """Receive the run's name, once it is in the store."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Receive the start of a stage of `total` trials."""

    def update(self, counts: Counts) -> None:
        """Receive the counts of the stage. Called for every batch, so it must be fast."""


class Silent:
    """Report nothing."""

    def begin(self, run: str) -> None:
        """Ignore the run's name."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Ignore the start of a stage."""

    def update(self, counts: Counts) -> None:
        """Ignore the counts."""


class Reading(msgspec.Struct, frozen=True):
    """Progress of a stage after some seconds."""

    stage: str
    role: str
    total: int
    counts: Counts
    seconds: float

    @property
    def done(self) -> int:
        """Return the number of settled trials; at the end all of them, since several trials may share one answer."""
        counts = self.counts
        return min(self.total, max(counts.trials, counts.cached + counts.asked + counts.failed + counts.missed))

    @property
    def rate(self) -> float | None:
        """Return the model's answers per second; None before the first answer."""
        return self.counts.asked / self.seconds if self.counts.asked and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds left at the present rate, if all remaining trials must be asked; None if unknown."""
        if self.done >= self.total:
            return 0.0
        settled = self.counts.asked + self.counts.failed or self.done
        return (self.total - self.done) * self.seconds / settled if settled and self.seconds > 0 else None

    def as_record(self, event: str) -> dict[str, Any]:
        """Return plain values for programs; unknown values are None."""
        return {
            "schema": SCHEMA,
            "event": event,
            "stage": self.stage,
            "role": self.role,
            "total": self.total,
            "done": self.done,
            "asked": self.counts.asked,
            "cached": self.counts.cached,
            "failed": self.counts.failed,
            "refused": self.counts.refused,
            "retried": self.counts.retried,
            "missed": self.counts.missed,
            "input_tokens": self.counts.input_tokens,
            "output_tokens": self.counts.output_tokens,
            "cost": self.counts.cost,
            "rate": _rounded(self.rate),
            "pace": self.counts.pace,
            "batched": self.counts.batched,
            "waiting_until": self.counts.waiting_until,
            "seconds": round(self.seconds, 3),
            "seconds_left": _rounded(self.seconds_left),
        }

    def words(self) -> str:
        """Return the progress as text."""
        counts = self.counts
        words = [f"{name} {getattr(counts, name):,}" for name in ("asked", "cached", "failed", "refused")]
        words += [f"{name} {count:,}" for name in ("retried", "missed") if (count := getattr(counts, name))]
        if counts.batched:
            words.append(f"{counts.batched:,} with the provider in batches")
        if self.rate is not None:
            words.append(_per_second(self.rate))
        if counts.pace is not None:
            words.append(f"endpoint limit {_per_second(counts.pace)}")
        if counts.waiting_until is not None and counts.waiting_until > time.time():
            clock = time.strftime("%H:%M", time.localtime(counts.waiting_until))
            words.append(f"waiting until {clock}: the endpoint asked for it or is down")
        if counts.cost is not None:
            words.append(f"cost ${counts.cost:,.4f}" if counts.cost < 1 else f"cost ${counts.cost:,.2f}")
        return ", ".join(words)

    def left(self) -> str:
        """Return the time left as text: hours, minutes and seconds."""
        if self.seconds_left is None:
            return "time left unknown"
        minutes, seconds = divmod(round(self.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d} left" if hours else f"{minutes}:{seconds:02d} left"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
