"""What takes long before the first answer, shown on standard error: a line on a terminal, lines in a pipe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..contracts.steps import listens
from .outlet import echo, single_line
from .terminal import terminal

SLOW = 2.0
"""Seconds after which a run says what it waits for."""


class StepLines:
    """Writes a line per step, after some seconds unless it has ended by then."""

    def __init__(self, after: float = 0.0) -> None:
        self._after = after

    def __call__(self, words: str) -> Callable[[], None]:
        """Receive a step that begins."""
        line = f"{words[:1].upper()}{words[1:]} ..."
        if not self._after:
            echo(line, err=True)
            return lambda: None
        timer = threading.Timer(self._after, echo, (line,), {"err": True})
        timer.daemon = True
        timer.start()
        return timer.cancel


class StepStatus:
    """Shows the step that began last and has not ended, on the line of a terminal."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._steps, self._lock = show, list[str](), threading.Lock()

    def __call__(self, words: str) -> Callable[[], None]:
        """Receive a step that begins."""
        self._change(self._steps.append, words)
        return lambda: self._change(self._steps.remove, words)

    def _change(self, change: Callable[[str], None], words: str) -> None:
        with self._lock:
            change(words)
            self._show(single_line(self._steps[-1]) if self._steps else "")


@contextmanager
def shown_steps() -> Iterator[None]:
    """Show every step of a command that has no other progress."""
    if not sys.stderr.isatty():
        with listens(StepLines()):
            yield
        return
    with terminal(stderr=True).status("") as status, listens(StepStatus(status.update)):
        yield


@contextmanager
def slow_steps(*, shown: bool) -> Iterator[None]:
    """Show the steps of a run that take long, beside its progress."""
    if not shown:
        yield
        return
    with listens(StepLines(SLOW)):
        yield
