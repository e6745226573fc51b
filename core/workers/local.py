"""`Local`: a process per worker on this machine, started anew (never forked), with pipes for frames."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections import deque

from ..contracts.errors import UsageError
from .engine import Engine, Link
from .options import WorkerOptions
from .places import Place, find_places
from .process import HEADER

LOG = logging.getLogger(__name__)
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main()"
LINES = 5
"""Last lines of a worker's standard error that are kept, for the message if it ends."""
SHOWN = 300


class Pipe(Link):
    """A process, and its pipes."""

    def __init__(self, number: int, process: asyncio.subprocess.Process) -> None:
        self.name = f"worker {number + 1} (process {process.pid})"
        self._process = process
        self._said: deque[str] = deque(maxlen=LINES)
        self._listens = asyncio.create_task(self._listen())

    def send(self, frame: bytes) -> None:
        """Write a frame. A pipe that is full holds no more than the calls in flight."""
        if (pipe := self._process.stdin) is not None and not pipe.is_closing():
            pipe.write(len(frame).to_bytes(HEADER, "big") + frame)  # two writes wake the worker twice

    async def receive(self) -> bytes | None:
        """Read a frame."""
        pipe = self._process.stdout
        try:
            return await pipe.readexactly(int.from_bytes(await pipe.readexactly(HEADER), "big"))  # type: ignore[union-attr]
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def kill(self) -> None:
        """Kill the process, and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    async def gone(self) -> str:
        """Wait for the process, and say how it ended."""
        code = await self._process.wait()
        await self._listens
        if self._process.stdin is not None:
            self._process.stdin.close()
        how = f"was ended by signal {-code} ({_signal(-code)})" if code < 0 else f"ended with exit code {code}"
        return f"{how}. It said: {self._said[-1][:SHOWN]}" if self._said else how

    async def _listen(self) -> None:
        """Read what the worker's libraries print; a full pipe would halt it."""
        pipe = self._process.stderr
        while pipe is not None and (block := await pipe.read(1 << 16)):
            for line in block.decode(errors="replace").replace("\r", "\n").splitlines():
                if line.strip():
                    self._said.append(line.strip())
                    LOG.debug("%s: %s", self.name, line)


class Local(Engine):
    """Processes of this machine."""

    async def open(self, options: WorkerOptions) -> list[Place]:
        """Return a GPU, or a share of the processors, for each worker."""
        return find_places(options)

    async def start(self, place: Place) -> Link:
        """Start a process that serves. It leads a group, so that Ctrl-C of a terminal reaches the driver alone."""
        code = START.format(module=f"{__package__}.process")
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", code, json.dumps([path for path in sys.path if isinstance(path, str)])),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **place.environment},
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"a worker cannot be started: {error.strerror or error}. Ask for fewer.", code="workers.start"
            ) from None
        return Pipe(place.number, process)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
