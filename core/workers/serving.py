"""`Serving`: what every worker does, whatever started it. It makes the models that it is told, and answers calls.

It takes frames in a thread of its own, so that a service which blocks an adapter's thread gets its reply.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache as cached
from itertools import count
from operator import attrgetter

import msgspec

from ..contracts.adapter import ModelAdapter, Services
from ..contracts.canonical import decode_request
from ..contracts.cells import Cells
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
    Hello,
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
    versions,
)

KEPT_BYTES = 512 << 20
"""Bytes of images that a worker keeps; the oldest go first."""


class Images:
    """Images that travelled to this worker: each travels once, while there is room for it."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._kept: dict[str, bytes] = {}
        self._bytes, self._most = 0, most
        self._turn = threading.Lock()

    def get(self, sha256: str, serving: Serving, model: str) -> bytes:
        """Return the bytes of an image, from the driver if they are not here. Blocks."""
        with self._turn:
            if (found := self._kept.pop(sha256, None)) is None:
                found = serving.need(model, "blobs", sha256)
                self._bytes += len(found)
            self._kept[sha256] = found
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= len(self._kept.pop(next(iter(self._kept))))
            return found


class Serving:
    """The models of this worker, and its two ways to the driver."""

    def __init__(self, receive: Callable[[], bytes], send: Callable[[bytes], None]) -> None:
        """`receive` waits for the next frame; `send` is called from any thread."""
        self._receive, self._carry = receive, send
        self._needs: dict[int, Future[bytes]] = {}
        self._numbers = count(1)
        self._images = Images()
        self._adapters: dict[str, ModelAdapter] = {}
        self._again: dict[Request, int] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def work(self) -> None:
        """Serve until the driver says that it is the end."""
        self._send(Hello(versions()))
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
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
        while True:
            message = to_worker.decode(self._receive())
            if isinstance(message, Given):
                self._settle(message)
            else:
                loop.call_soon_threadsafe(self._take, message)

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

        self._adapters[model].services = Services(
            blobs=(lambda sha256: self._images.get(sha256, self, model)) if "blobs" in here else None,
            keep=keep if "keep" in here else None,
            cells=cached(lambda: msgspec.msgpack.decode(self.need(model, "cells", ""), type=Cells | None))
            if "cells" in here
            else None,
            generation=(lambda request: self._again.get(request, 0)) if "generation" in here else None,
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
        self._carry(pack(message))


def make(model: Model) -> ModelAdapter:
    """Return the instance of a model."""
    module, _, name = model.target.partition(":")
    kind = attrgetter(name)(importlib.import_module(module))
    adapter: ModelAdapter = kind(msgspec.msgpack.decode(model.options, type=kind.options))
    return adapter
