"""Progress of a run, on standard error: bars for a terminal, lines for a log, JSON lines for programs.

A run reports every batch, up to 100,000 times a second; the display is refreshed a few times a second. Other updates
only read the clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import ClassVar, Literal, TextIO

import msgspec
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from ..engine.progress import SCHEMA, Counts, Reading
from .outlet import echo, echo_json, single_line
from .terminal import Outlet

Kind = Literal["auto", "bar", "plain", "json", "none"]


class Shown:
    """Base of all displays. It shows nothing, but keeps the run's name."""

    every: ClassVar[float] = float("inf")
    """Seconds between two refreshes."""
    speaks: ClassVar[bool] = False
    """Whether it writes sentences for people, among which others may stand."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.run: str | None = None
        """Name of the run, once it has started."""
        self._clock, self._next = clock, float("inf")
        self._stage: tuple[str, str, int] | None = None
        self._began, self._last = 0.0, Counts()
        self._waits: float | None = None

    def begin(self, run: str) -> None:
        """Receive the run's name."""
        self.run = run

    def stage(self, name: str, role: str, total: int) -> None:
        """Start the display of a stage, and end that of the stage before."""
        self.close()
        self._stage, self._last, self._began = (name, role, total), Counts(), self._clock()
        self._next = self._began + self.every
        self.opened(self._reading())

    def update(self, counts: Counts) -> None:
        """Refresh the display of the stage, if the last refresh was long enough ago."""
        self._last = counts
        waits, self._waits = counts.waiting_until != self._waits, counts.waiting_until
        if (now := self._clock()) >= self._next or waits:
            self._next = now + self.every
            self.looked(self._reading())

    def close(self) -> None:
        """Show the final state of the stage."""
        if self._stage is not None:
            reading, self._stage, self._next = self._reading(), None, float("inf")
            self.ended(reading)

    def opened(self, reading: Reading) -> None:
        """Show the start of a stage."""

    def looked(self, reading: Reading) -> None:
        """Show the progress of the stage."""

    def ended(self, reading: Reading) -> None:
        """Show the end of the stage."""

    def _reading(self) -> Reading:
        name, role, total = self._stage or ("", "", 0)
        return Reading(name, role, total, self._last, self._clock() - self._began)


class _Bars(Bars):
    """A bar with a line of text below it, so that neither is cut on a narrow terminal."""

    words = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar and the text."""
        yield from super().get_renderables()
        yield Text(f"  {self.words}")


class BarProgress(Shown):
    """A bar per stage."""

    every, speaks = 0.1, True

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._console = console
        self._bars: _Bars | None = None
        self._task = TaskID(0)

    def opened(self, reading: Reading) -> None:
        """Start a bar."""
        self._bars = _Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=self._console,
        )
        name = single_line(f"{reading.stage} ({reading.role})")
        self._task = self._bars.add_task(name, total=reading.total, left="")
        self._bars.start()

    def looked(self, reading: Reading) -> None:
        """Move the bar."""
        if self._bars is not None:
            self._bars.words = reading.words()
            self._bars.update(self._task, completed=reading.done, left=reading.left())

    def ended(self, reading: Reading) -> None:
        """Show the final state of the bar."""
        if self._bars is not None:
            self._bars.words = reading.words()
            self._bars.update(self._task, completed=reading.done, left="")
            self._bars.stop()
            self._bars = None


class LineProgress(Shown):
    """A line every few seconds, and one at the end of a stage."""

    every, speaks = 5.0, True

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream = stream

    def looked(self, reading: Reading) -> None:
        """Write a line."""
        self._write(reading, f", {reading.left()}")

    def ended(self, reading: Reading) -> None:
        """Write the last line of a stage."""
        self._write(reading, "")

    def _write(self, reading: Reading, more: str) -> None:
        line = f"{reading.stage} ({reading.role}): {reading.done:,} of {reading.total:,}, {reading.words()}{more}"
        echo(line, file=self._stream)


class JsonProgress(Shown):
    """A JSON object per line, at most two a second during a stage; `docs/shell.md` has the fields."""

    every = 0.5

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream = stream

    def begin(self, run: str) -> None:
        """Write the run's name."""
        super().begin(run)
        self._write({"schema": SCHEMA, "event": "run", "run": run})

    def opened(self, reading: Reading) -> None:
        """Write the start of a stage."""
        self._write(reading.as_record("stage"))

    def looked(self, reading: Reading) -> None:
        """Write the progress of the stage."""
        self._write(reading.as_record("progress"))

    def ended(self, reading: Reading) -> None:
        """Write the end of the stage."""
        self._write(reading.as_record("stage_end"))

    def _write(self, record: dict[str, object]) -> None:
        echo_json(msgspec.json.encode(record).decode(), file=self._stream)


def make_progress(kind: Kind = "auto", *, quiet: bool = False) -> Shown:
    """Return a display on standard error; `auto`: bars on a terminal, otherwise lines."""
    if quiet or kind == "none":
        return Shown()
    console = Outlet(stderr=True)
    if kind == "json":
        return JsonProgress(sys.stderr)
    if kind == "bar" or (kind == "auto" and console.is_terminal):
        return BarProgress(console)
    return LineProgress(sys.stderr)
