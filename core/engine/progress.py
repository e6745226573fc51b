"""The interface by which a run reports its progress."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from .scheduler import Counts

SCHEMA = 1
"""Version of what `as_record` returns; raised when a field changes its meaning or goes."""


class Progress(Protocol):
    """What a run reports to: a terminal, a log, nothing."""

    def begin(self, run: str) -> None:
        """Hear the run's name, once it is in the store."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Hear that a stage of `total` trials begins."""

    def update(self, counts: Counts) -> None:
        """Hear how far the stage is. Called for every batch, so what takes time must not be done each time."""


class Silent:
    """Report nothing."""

    def begin(self, run: str) -> None:
        """Hear the run's name."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Hear that a stage begins."""

    def update(self, counts: Counts) -> None:
        """Hear how far the stage is."""


class Reading(msgspec.Struct, frozen=True):
    """How far a stage is after some seconds."""

    stage: str
    role: str
    total: int
    counts: Counts
    seconds: float

    @property
    def done(self) -> int:
        """Return the trials that are settled; several may have shared one answer, so the end is taken as it is told."""
        counts = self.counts
        return min(self.total, max(counts.trials, counts.cached + counts.asked + counts.failed + counts.missed))

    @property
    def rate(self) -> float | None:
        """Return the answers per second that the model gave; None before the first."""
        return self.counts.asked / self.seconds if self.counts.asked and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Return the time left if what is left must be asked too, at the rate so far; None where nobody can know."""
        if self.done >= self.total:
            return 0.0
        settled = self.counts.asked + self.counts.failed or self.done
        return (self.total - self.done) * self.seconds / settled if settled and self.seconds > 0 else None

    def as_record(self, event: str) -> dict[str, Any]:
        """Return plain values for a machine; what is unknown is None."""
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
            "seconds": round(self.seconds, 3),
            "seconds_left": _rounded(self.seconds_left),
        }

    def words(self) -> str:
        """Return the same for a person."""
        counts = self.counts
        words = [f"{name} {getattr(counts, name):,}" for name in ("asked", "cached", "failed", "refused")]
        words += [f"{name} {count:,}" for name in ("retried", "missed") if (count := getattr(counts, name))]
        if self.rate is not None:
            words.append(_per_second(self.rate))
        if counts.pace is not None:
            words.append(f"endpoint lets through {_per_second(counts.pace)}")
        if counts.cost is not None:
            words.append(f"cost ${counts.cost:,.4f}" if counts.cost < 1 else f"cost ${counts.cost:,.2f}")
        return ", ".join(words)

    def left(self) -> str:
        """Return the time left as hours, minutes and seconds."""
        if self.seconds_left is None:
            return "time left unknown"
        minutes, seconds = divmod(round(self.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d} left" if hours else f"{minutes}:{seconds:02d} left"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
