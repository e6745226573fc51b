"""Signals that ask a command to end do what Ctrl-C does, so that its answers are kept and it says how to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = ("SIGTERM", "SIGHUP")
"""What batch systems send before they kill, and a terminal that is closed. Windows has no SIGHUP."""


@contextmanager
def ended_gently() -> Iterator[None]:
    """Interrupt the commands within at a signal of `NAMES`; one that was ignored before, as `nohup` does, stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    # A shell starts `prejudge run ... &` of a script with Ctrl-C ignored.
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
