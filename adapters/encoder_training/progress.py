"""Tell how far the training is: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from .state import Epoch


class Progress:
    """What a training reports to; this one says nothing."""

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def cells(self, done: int, total: int, name: str) -> None:
        """Hear which training of how many begins."""

    def step(self, done: int, total: int) -> None:
        """Hear how many batches of the epoch are done."""

    def epoch(self, epoch: Epoch, most: int) -> None:
        """Hear what an epoch came to."""

    def note(self, text: str) -> None:
        """Hear something worth a line."""


class Lines(Progress):
    """One line per epoch."""

    def cells(self, done: int, total: int, name: str) -> None:
        """Say which training begins."""
        self.note(f"[{done + 1}/{total}] {name}")

    def epoch(self, epoch: Epoch, most: int) -> None:
        """Say what an epoch came to."""
        self.note(_words(epoch, most))

    def note(self, text: str) -> None:
        """Write a line."""
        print(text, file=sys.stderr, flush=True)


class OnTerminal(Progress):
    """A bar for the trainings and one for the batches of the epoch."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self._bars = Bars(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self._all = self._bars.add_task("trainings", total=None)
        self._steps = self._bars.add_task("batches", total=None)

    def __enter__(self) -> Progress:
        """Show the bars."""
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._bars.stop()

    def cells(self, done: int, total: int, name: str) -> None:
        """Move the upper bar, and say which training begins."""
        self.note(f"[{done + 1}/{total}] {name}")
        self._bars.update(self._all, completed=done, total=total, description=name)

    def step(self, done: int, total: int) -> None:
        """Move the lower bar."""
        self._bars.update(self._steps, completed=done, total=total)

    def epoch(self, epoch: Epoch, most: int) -> None:
        """Write a line above the bars."""
        self.note(_words(epoch, most))

    def note(self, text: str) -> None:
        """Write a line above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)


def choose_progress(quiet: bool) -> Progress:
    """Return bars where standard error is a terminal, lines elsewhere, silence on request."""
    if quiet:
        return Progress()
    console = Console(stderr=True)
    return OnTerminal(console) if console.is_terminal else Lines()


def _words(epoch: Epoch, most: int) -> str:
    tuning = "-" if epoch.tuning is None else f"{epoch.tuning:.4f}"
    if epoch.epoch == 0:
        return f"  as given: tuning delta-sim {tuning}"
    loss = "-" if epoch.loss is None else f"{epoch.loss:.4f}"
    rate = f"{epoch.steps / epoch.seconds:.2f}" if epoch.seconds else "-"
    return f"  epoch {epoch.epoch}/{most}: loss {loss}, tuning delta-sim {tuning}, {rate} steps/s"
