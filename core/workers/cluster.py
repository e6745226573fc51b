"""`Cluster`: an actor of Ray per worker, on the machines of one cluster. No other module imports Ray.

The driver is one more process of the cluster: it runs on one of its machines. Frames travel as arguments and results
of the actor's methods; Ray chooses the machine, and gives a worker its GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from ..contracts.errors import MissingExtraError, UsageError
from .engine import Engine, Link
from .options import WorkerOptions
from .places import Machine, Place, find_places_of
from .serving import Serving

ADDRESS = "RAY_ADDRESS"
AUTO = "auto"
LOCAL_CLUSTER = "local"
"""What Ray calls a cluster of this machine, for this process."""
VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_worker_niceness": "0",
    "RAY_gcs_server_port_wait_time_s": "120",
}
"""Variables of Ray, unless they are set: a run tells nobody that it took place, reports its errors itself, and its
workers do what the machine is there for. Ray waits 30 s for its own server, too short on a machine that is busy."""
OBJECT_BYTES = 256 << 20
"""Memory for frames on their way, of a cluster for one run; Ray itself would take a third of the machine's."""
REACH_SECONDS, CONNECT_SECONDS = 5.0, 60.0
"""Longest wait for an address to take a connection, and for a cluster to let this process in."""
STARTS = 3
"""Attempts to start Ray, which gives its own processes 30 s: too few on a machine that is busy with other work."""
REAP_SECONDS = 3.0
"""Time in which an actor that was told to end does so, unless it is halted."""
SHOWN = 300


class Actor:
    """What Ray runs on a machine: a worker, its frames, and their order."""

    def __init__(self, environment: dict[str, str], path: list[str]) -> None:
        """`path` is the driver's; what this machine has of it comes last."""
        os.environ.update(environment)
        sys.path.extend(one for one in path if one not in sys.path and Path(one).exists())
        self._early: dict[int, bytes] = {}
        self._next = 0
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def where(self) -> tuple[str, str, int]:
        """Return the machine as Ray names it and as people do, and the process."""
        return _library().get_runtime_context().get_node_id(), socket.gethostname(), os.getpid()

    def take(self, number: int, frame: bytes) -> None:
        """Take a frame. Ray keeps no order among calls that may run at once: the frames are numbered."""
        self._early[number] = frame
        while self._next in self._early:
            self._came.put(self._early.pop(self._next))
            self._next += 1

    def give(self) -> list[bytes]:
        """Return the frames for the driver, at least one; none: the worker has ended. Blocks."""
        frames = [self._out.get()]
        with contextlib.suppress(queue.Empty):
            while True:
                frames.append(self._out.get_nowait())
        return [frame for frame in frames if frame]

    def _serve(self) -> None:
        try:
            asyncio.run(_serve(self._came, self._out))
        finally:
            self._out.put(b"")


async def _serve(came: queue.SimpleQueue[bytes], out: queue.SimpleQueue[bytes]) -> None:
    await Serving(came.get, out.put).work()


def reap(pid: int, seconds: float) -> None:
    """End an actor's process on this machine, unless it ends by itself: one that is halted hears nothing of Ray."""
    until = time.monotonic() + seconds
    while (line := Path(f"/proc/{pid}/cmdline")).exists() and line.read_bytes().startswith(b"ray::"):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.1)


class Handle(Link):
    """An actor, as the driver has it."""

    def __init__(self, ray: Any, number: int, actor: Any) -> None:
        self.name = f"worker {number + 1}"
        self._ray, self._actor = ray, actor
        self._numbers = count()
        self._frames: deque[bytes] = deque()
        self._node, self._pid = "", 0
        self._ended = self._killed = False
        self._how = "ended"

    def send(self, frame: bytes) -> None:
        """Send a frame; nobody waits for the call."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._actor.take.remote(next(self._numbers), frame)

    async def receive(self) -> bytes | None:
        """Return the next frame; those that wait come together."""
        while not self._frames:
            try:
                if not self._pid:
                    self._node, host, self._pid = await self._actor.where.remote()
                    self.name += f" (process {self._pid} on {host})"
                frames = await self._actor.give.remote()
            except self._ray.exceptions.RayError as error:
                self._how = f"ended: {_words(error)}"
                frames = []
            if not frames:
                self._ended = True
                return None
            self._frames.extend(frames)
        return self._frames.popleft()

    def kill(self) -> None:
        """End the actor."""
        if not self._ended:
            self._killed = True
            self._ray.kill(self._actor)

    async def gone(self) -> str:
        """Say how it ended; nothing of it can be answered any more."""
        if self._killed and self._pid:
            there = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(self._node, soft=False)
            self._ray.remote(reap).options(num_cpus=0, scheduling_strategy=there).remote(self._pid, REAP_SECONDS)
        return self._how


class Cluster(Engine):
    """The machines of a cluster of Ray."""

    def __init__(self) -> None:
        self._ray: Any = None
        self._own = False
        """Whether this engine let the process into the cluster."""

    async def open(self, options: WorkerOptions) -> list[Place]:
        """Enter the cluster, or start one of this machine alone, and share it out."""
        self._ray = ray = _library()
        if not ray.is_initialized():
            await self._enter(options.address or os.environ.get(ADDRESS))
        try:
            found = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            machines = [Machine(one.get("CPU", 0.0), one.get("GPU", 0.0)) for one in found]
            return find_places_of(options, machines)
        except BaseException:
            await self.aclose()
            raise

    async def _enter(self, address: str | None) -> None:
        for name, value in VARIABLES.items():
            os.environ.setdefault(name, value)
        if address is None or address == LOCAL_CLUSTER:
            self._start()
        else:
            await _reach(address)
            await _within(CONNECT_SECONDS, address, lambda: self._init(address))
        self._own = True

    def _start(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise UsageError(
                "Ray can be started from a program's main thread only, which a notebook keeps for itself. Start it by "
                "`ray start --head`, and give the address 'auto'.",
                code="workers.address",
            )
        before, log = signal.getsignal(signal.SIGTERM), logging.getLogger("ray")
        level = log.level
        log.setLevel(logging.ERROR)  # it says at each start that its token keeps others out
        try:
            for left in reversed(range(STARTS)):
                try:
                    return self._init(LOCAL_CLUSTER, object_store_memory=OBJECT_BYTES, include_dashboard=False)
                except Exception as error:
                    if not left or "timed out" not in str(error).casefold():
                        raise
                    self._ray.shutdown()
        except Exception as error:  # whatever keeps Ray from starting, the user is to read it
            raise UsageError(f"Ray cannot be started on this machine: {_words(error)}.", code="workers.start") from None
        finally:
            log.setLevel(level)
            signal.signal(signal.SIGTERM, before)  # a run that is told to end keeps its answers

    def _init(self, address: str, **more: Any) -> None:
        self._ray.init(address=address, log_to_driver=False, configure_logging=False, **more)

    async def start(self, place: Place) -> Link:
        """Start an actor. Ray waits until a machine has room for it."""
        kind = self._ray.remote(Actor).options(
            num_cpus=place.processors,
            num_gpus=place.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,  # one call waits for frames, and one brings some
        )
        actor = kind.remote(place.environment, [one for one in sys.path if isinstance(one, str)])
        return Handle(self._ray, place.number, actor)

    async def aclose(self) -> None:
        """Leave the cluster; one that was started for this run ends."""
        if self._own:
            self._own = False
            self._ray.shutdown()


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("the engine ray", "ray") from None
    return ray


async def _reach(address: str) -> None:
    """See whether something listens at an address, so that nobody waits for a machine that is off.

    Raises:
        UsageError: nothing does, or it is no address.
    """
    host, colon, port = address.rpartition(":")
    if address == AUTO:
        return
    if not colon or not port.isdigit() or "//" in address:
        raise UsageError(
            f"address = {address!r} is neither 'auto' nor HOST:PORT, such as 10.0.0.1:6379. Run this command on a "
            "machine of the cluster.",
            code="workers.address",
        )
    try:
        async with asyncio.timeout(REACH_SECONDS):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, OverflowError, TimeoutError) as error:
        raise _unreached(address, str(error) or f"no connection within {REACH_SECONDS:.0f} s") from None
    writer.close()


async def _within(seconds: float, address: str, call: Callable[[], None]) -> None:
    """Call what blocks, in a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def work() -> None:
        error: Exception | None = None
        try:
            call()
        except Exception as raised:  # whatever keeps a cluster from letting this process in, the user is to read it
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop may be over
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=work, daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await done
    except TimeoutError:
        raise _unreached(address, f"no answer within {seconds:.0f} s") from None
    except Exception as error:
        if "Version mismatch" in str(error):
            raise UsageError(
                f"the cluster at {address} has other versions: {_words(error)}. Install the same ones on all machines.",
                code="workers.versions",
            ) from None
        raise _unreached(address, _words(error)) from None


def _unreached(address: str, why: str) -> UsageError:
    return UsageError(
        f"no cluster of Ray answers at {address!r}: {why}. Start one by `ray start --head`, and run "
        "this command on one of its machines.",
        code="workers.address",
        address=address,
    )


def _words(error: Exception) -> str:
    """Return an error of Ray in one line: what it says last, of several paragraphs."""
    text = str(error)
    if (found := re.search(r"exit detail: *(.+)", text)) is not None:
        text = found[1]
    return " ".join(text.split())[:SHOWN].rstrip(".") or type(error).__name__
