"""A worker: makes the models that it is told, and answers calls until its driver is gone.

It reads frames in a thread of its own, so that a service which blocks an adapter's thread gets its reply, and so that
it ends at once when the pipe ends: no worker outlives its driver, however that one ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import threading
from concurrent.futures import Future
from itertools import count
from operator import attrgetter
from typing import BinaryIO, NoReturn

import msgspec

from ..contracts.adapter import ModelAdapter, Services
from ..contracts.canonical import decode_request
from ..contracts.errors import PrejudgeError
from ..contracts.records import Request
from .wire import (
    Answered,
    Ask,
    Beat,
    Bind,
    Broke,
    Described,
    End,
    Given,
    Model,
    Need,
    Open,
    Opened,
    Raised,
    ToDriver,
    ToWorker,
    describe,
    hear,
    pack,
    pack_answer,
    tell,
    to_worker,
)

HEADER = 8
"""Bytes of a frame's length, big-endian, in front of it."""
KEPT_BYTES = 512 << 20
"""Bytes of images that a worker keeps; the oldest go first."""


class Images:
    """Images that travelled to this worker: each travels once, while there is room for it."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._bytes = 0
        self._turn = threading.Lock()

    def get(self, sha256: str, serving: Serving, model: str) -> bytes:
        """Return the bytes of an image, from the driver if they are not here. Blocks."""
        with self._turn:
            if (found := self._kept.pop(sha256, None)) is None:
                found = serving.need(model, "blobs", sha256)
                self._bytes += len(found)
            self._kept[sha256] = found
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= len(self._kept.pop(next(iter(self._kept))))
            return found


class Serving:
    """The models of this worker, and the pipe to the driver."""

    def __init__(self, reading: BinaryIO, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._turn = threading.Lock()
        self._needs: dict[int, Future[bytes]] = {}
        self._numbers = count(1)
        self._images = Images()
        self._adapters: dict[str, ModelAdapter] = {}
        self._again: dict[Request, int] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def work(self) -> None:
        """Serve until the driver says that it is the end."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        await self._ended.wait()
        for adapter in self._adapters.values():
            await adapter.aclose()

    def need(self, model: str, service: str, text: str, data: bytes = b"") -> bytes:
        """Call a service of the driver, and wait for what it gives. Blocks; also in the event loop."""
        number, reply = next(self._numbers), Future[bytes]()
        self._needs[number] = reply
        self._send(Need(number, model, service, text, data))
        return reply.result()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        while frame := read_frame(self._reading):
            message = to_worker.decode(frame)
            if isinstance(message, Given):
                self._settle(message)
            else:
                loop.call_soon_threadsafe(self._take, message)
        leave()

    def _settle(self, given: Given) -> None:
        reply = self._needs.pop(given.need)
        if given.error is None:
            reply.set_result(given.data)
        else:
            reply.set_exception(hear(given.error))

    def _take(self, message: ToWorker) -> None:
        if isinstance(message, Open):
            self._open(message)
        elif isinstance(message, Bind):
            self._bind(message)
        elif isinstance(message, Ask):
            task = asyncio.create_task(self._answer(message))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)
        elif isinstance(message, End):
            self._ended.set()

    def _open(self, message: Open) -> None:
        sys.path[:] = message.path
        try:
            self._adapters = {name: make(model) for name, model in message.models.items()}
        except PrejudgeError as error:
            self._send(Raised(0, tell(error)))
        except Exception as error:  # whatever an adapter's constructor raises is the driver's to report
            self._send(Broke(0, type(error).__name__, str(error)))
        else:
            self._send(Opened({name: self._describe(name) for name in self._adapters}))
            task = asyncio.create_task(self._beat(message.beat_seconds))
            self._calls.add(task)

    def _describe(self, name: str) -> Described:
        return describe(self._adapters[name])

    def _bind(self, message: Bind) -> None:
        model, here = message.model, message.services

        def keep(data: bytes, media_type: str) -> str:
            return self.need(model, "keep", media_type, data).decode()

        self._adapters[model].bind(
            Services(
                blobs=(lambda sha256: self._images.get(sha256, self, model)) if "blobs" in here else None,
                keep=keep if "keep" in here else None,
                generation=(lambda request: self._again.get(request, 0)) if "generation" in here else None,
            )
        )

    async def _beat(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self._send(Beat())

    async def _answer(self, message: Ask) -> None:
        requests = [decode_request(one) for one in message.requests]
        again: dict[Request, int] = {requests[place]: times for place, times in message.again.items()}
        self._again |= again
        adapter = self._adapters[message.model]
        reply: ToDriver
        try:
            answers = await adapter.answer(requests)
            packed = [pack_answer(one, adapter.identity.adapter) for one in answers]
            reply = Answered(message.call, packed, adapter.limits)
        except PrejudgeError as error:
            reply = Raised(message.call, tell(error))
        except Exception as error:  # a defect of an adapter is reported by the driver, as in one process
            reply = Broke(message.call, type(error).__name__, str(error))
        for request in again:
            self._again.pop(request, None)
        self._send(reply)

    def _send(self, message: ToDriver) -> None:
        frame = pack(message)
        data = memoryview(len(frame).to_bytes(HEADER, "big") + frame)
        with self._turn:
            try:
                while data:
                    data = data[os.write(self._writing, data) :]
            except OSError:
                leave()


def make(model: Model) -> ModelAdapter:
    """Return the instance of a model."""
    module, _, name = model.target.partition(":")
    kind = attrgetter(name)(importlib.import_module(module))
    adapter: ModelAdapter = kind(msgspec.msgpack.decode(model.options, type=kind.options))
    return adapter


def read_frame(reading: BinaryIO) -> bytes:
    """Return the next frame; nothing at the end of the pipe. Blocks."""
    header = reading.read(HEADER)
    if len(header) < HEADER:
        return b""
    size = int.from_bytes(header, "big")
    frame = reading.read(size)
    return frame if len(frame) == size else b""


def leave() -> NoReturn:
    """End this process and those that it started, at once."""
    with contextlib.suppress(OSError, AttributeError):
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Serve on standard input and output; what libraries print goes to standard error."""
    reading, writing = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    # Ctrl-C is the driver's: it ends the run in order, and with it the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_serve(reading, writing))
    leave()


async def _serve(reading: BinaryIO, writing: int) -> None:
    await Serving(reading, writing).work()
