"""How a run tells what it is doing."""

from __future__ import annotations

from typing import Protocol

from .scheduler import Counts


class Progress(Protocol):
    """What a run reports to: a terminal, a log, nothing."""

    def begin(self, run: str) -> None:
        """Hear the run's name, once it is in the store."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Hear that a stage of `total` trials begins."""

    def update(self, counts: Counts) -> None:
        """Hear how far the stage is."""


class Silent:
    """Report nothing."""

    def begin(self, run: str) -> None:
        """Hear the run's name."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Hear that a stage begins."""

    def update(self, counts: Counts) -> None:
        """Hear how far the stage is."""
