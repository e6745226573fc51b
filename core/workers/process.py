"""A worker as a process of its own, with frames on its standard input and output.

It ends at once when its input ends: no worker outlives its driver, however that one ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import BinaryIO, NoReturn

from .serving import Serving

HEADER = 8
"""Bytes of a frame's length, big-endian, in front of it."""


class Pipes:
    """The pipes to the driver."""

    def __init__(self, reading: BinaryIO, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._turn = threading.Lock()

    def receive(self) -> bytes:
        """Return the next frame. Blocks."""
        header = self._reading.read(HEADER)
        frame = self._reading.read(int.from_bytes(header, "big")) if len(header) == HEADER else b""
        if not frame or len(frame) < int.from_bytes(header, "big"):
            leave()
        return frame

    def send(self, frame: bytes) -> None:
        """Write a frame."""
        data = memoryview(len(frame).to_bytes(HEADER, "big") + frame)
        with self._turn:
            try:
                while data:
                    data = data[os.write(self._writing, data) :]
            except OSError:
                leave()


def leave() -> NoReturn:
    """End this process and those that it started, at once."""
    with contextlib.suppress(OSError, AttributeError):
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Serve on standard input and output; what libraries print goes to standard error."""
    pipes = Pipes(os.fdopen(os.dup(0), "rb"), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    # Ctrl-C is the driver's: it ends the run in order, and with it the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(pipes))
    leave()


async def serve(pipes: Pipes) -> None:
    """Serve until the driver says that it is the end."""
    await Serving(pipes.receive, pipes.send).work()
