"""The interface by which a run reports its progress."""

from __future__ import annotations

import time
from typing import Any, Protocol

import msgspec

from .counts import Counts

SCHEMA = 1
"""Version of `as_record`; increased when a field is removed or changes its meaning."""


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
