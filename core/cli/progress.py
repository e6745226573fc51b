"""Progress of a run on a terminal: a bar where there is a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..scheduler import Counts

EVERY_SECONDS = 10.0


class TerminalProgress:
    """Show each stage: asked, cached, failed, refused, rate, time left. Goes to standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.run: str | None = None
        """Name of the run, once it began."""
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._stage, self._total, self._began, self._spoke = "", 0, 0.0, 0.0
        self._last = Counts()

    def begin(self, run: str) -> None:
        """Hear the run's name."""
        self.run = run

    def stage(self, name: str, role: str, total: int) -> None:
        """Begin a bar, or say that the stage begins."""
        self.close()
        self._stage, self._total, self._last = f"{name} ({role})", total, Counts()
        self._began = self._spoke = time.monotonic()
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[counts]}"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._task = self._bar.add_task(self._stage, total=total, counts="")
            self._bar.start()

    def update(self, counts: Counts) -> None:
        """Show how far the stage is."""
        self._last = counts
        if self._bar is not None and self._task is not None:
            done = min(self._total, counts.cached + counts.asked + counts.failed)
            self._bar.update(self._task, completed=done, counts=self._words(counts))
        elif time.monotonic() - self._spoke >= EVERY_SECONDS:
            self._spoke = time.monotonic()
            self._console.print(f"{self._stage}: {self._words(counts)} of {self._total}")

    def close(self) -> None:
        """End the bar, and leave one line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._stage:
            self._console.print(f"{self._stage}: {self._words(self._last)} of {self._total}")
        self._stage = ""

    def _words(self, counts: Counts) -> str:
        rate = counts.asked / max(time.monotonic() - self._began, 1e-9)
        words = f"asked {counts.asked}, cached {counts.cached}, failed {counts.failed}, refused {counts.refused}"
        return f"{words}, {rate:.0f}/s" if counts.asked else words
