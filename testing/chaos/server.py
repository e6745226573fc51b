"""`ChaosServer`: a local endpoint that answers from a made-up model, and misbehaves by a schedule."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from email.message import Message
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from .behaviours import BEHAVIOURS, Behaviour
from .http import Call, Json, Reply, read_request, reset, send
from .tiny import answer_well

T = TypeVar("T")
Model = Callable[[str, Json], Json]
"""From the path and the body of a request to the body of its answer."""
_START_SECONDS = 10.0
_LONGEST_HEAD = 1 << 20


@dataclass
class Seen:
    """A request that arrived, and what became of it."""

    path: str
    headers: Message
    """Looked up in any case."""
    body: Json
    behaviour: str
    """The name of what was played, or nothing."""
    reply: Reply
    at: float
    """`time.monotonic()` of its arrival."""
    sent: bool = False
    """Whether the whole reply left, on a connection that was not reset after it."""


@dataclass
class _Rule:
    """When some behaviours are played."""

    plays: tuple[Behaviour, ...]
    first: int | None
    every: int
    share: float
    seed: int
    per_body: bool
    where: Callable[[Call], bool]
    counts: Counter[str] = field(default_factory=Counter)

    def choose(self, call: Call) -> Behaviour | None:
        """Return what is played at a call, if anything."""
        if not self.where(call):
            return None
        text = json.dumps(call.body, sort_keys=True)
        place = text if self.per_body else ""
        self.counts[place] += 1
        number = self.counts[place]
        if (self.first is not None and number > self.first) or number % self.every:
            return None
        if not self.per_body:
            self.counts[text] += 1
        # By the body and not by the order of arrival, which differs between two runs.
        draw = hashlib.sha256(f"{self.seed}|{self.counts[text]}|{text}".encode()).digest()
        if int.from_bytes(draw[:4], "big") >= self.share * 2**32:
            return None
        return self.plays[int.from_bytes(draw[4:8], "big") % len(self.plays)]


class ChaosServer:
    """A server in a thread of its own; use it in a `with`, or close it.

    `play` says how it misbehaves; calls that no rule concerns are answered well, by `model`. `plan` holds replies to
    the next calls, before all rules. All that arrived is in `seen`.
    """

    def __init__(self, model: Model = answer_well, *, tls: ssl.SSLContext | None = None) -> None:
        self.plan: list[Reply] = []
        self.seen: list[Seen] = []
        self.model, self.delay = model, 0.0
        self.busy = self.most_busy = 0
        """Calls being answered, now and at most."""
        self._usual, self._tls = model, tls
        self._rules: list[_Rule] = []
        self._open: dict[asyncio.StreamWriter, Seen | None] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._down_until = 0.0
        self._listener: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="chaos-server")
        self._thread.start()
        self.port = 0
        self._do(self._listen())
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}/v1"

    def play(
        self,
        *what: str | Reply | Behaviour,
        first: int | None = None,
        every: int = 1,
        share: float = 1.0,
        seed: int = 0,
        per_body: bool = False,
        where: Callable[[Call], bool] = lambda call: True,
    ) -> None:
        """Misbehave from now on; of several rules, the first that concerns a call is played.

        Args:
            what: names of `BEHAVIOURS`, or replies of your own; of several, one is drawn for each call.
            first: only at the first calls, so many.
            every: only at every k-th call.
            share: at this share of these calls, drawn by `seed` and by the request.
            seed: another seed draws others.
            per_body: count the calls of each request apart, so that `first=1` meets each request once.
            where: only at calls of which this is true, such as `lambda call: call.body["model"] == "b"`.
        """
        plays = tuple(_behaviour(one) for one in what)
        self._rules.append(_Rule(plays, first, every, share, seed, per_body, where))

    def go_down(self, seconds: float) -> None:
        """Refuse connections for some seconds, and reset the open ones."""
        self._do(self._fall(seconds))

    def stop_playing(self) -> None:
        """Forget all rules and plans: answer well from now on."""
        self.plan, self._rules = [], []

    def clear(self) -> None:
        """Forget all requests, too, and the model."""
        self.stop_playing()
        self.seen = []
        self.model, self.delay = self._usual, 0.0
        self.busy = self.most_busy = 0

    def close(self) -> None:
        """End the server and its connections."""
        if self._thread.is_alive():
            self._do(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_START_SECONDS)
            self._loop.close()

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _do(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(_START_SECONDS)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls, limit=_LONGEST_HEAD, backlog=1024
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _fall(self, seconds: float) -> None:
        self._down_until = max(self._down_until, time.monotonic() + seconds)
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            task = asyncio.create_task(self._rise())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        for writer, last in self._open.items():
            reset(writer)
            if last is not None:
                last.sent = False

    async def _rise(self) -> None:
        while (left := self._down_until - time.monotonic()) > 0:
            await asyncio.sleep(left)
        await self._listen()

    async def _end(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for writer in self._open:
            writer.transport.abort()
        for task in (tasks := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the next round of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open[writer] = None
        try:
            while (asked := await read_request(reader)) is not None and await self._answer(reader, writer, *asked):
                pass
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            del self._open[writer]
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str, headers: Message, raw: bytes
    ) -> bool:
        path = urlsplit(target).path.removeprefix("/v1")
        call = Call(path, headers, _object(raw), target, raw, Reply())
        name, reply = self._choose(call)
        seen = Seen(path, headers, call.body, name, reply, time.monotonic())
        self.seen.append(seen)
        self._open[writer] = seen
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            if reply.down_seconds:
                await self._fall(reply.down_seconds)
            seen.sent = await send(reader, writer, reply)
            return seen.sent
        finally:
            self.busy -= 1

    def _choose(self, call: Call) -> tuple[str, Reply]:
        if self.plan:
            return "", self.plan.pop(0)
        try:
            well = Reply(body=self.model(call.path, call.body), delay=self.delay)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            well = Reply(404, {"error": {"message": f"no answer at {call.path}: {error!r}"}})
        call = replace(call, well=well)
        played = next((found for rule in self._rules if (found := rule.choose(call)) is not None), None)
        return ("", well) if played is None else (played.name, played.reply(call))


def _behaviour(what: str | Reply | Behaviour) -> Behaviour:
    if isinstance(what, Reply):
        return Behaviour("own", "", lambda call: what)
    return BEHAVIOURS[what] if isinstance(what, str) else what


def _object(raw: bytes) -> Json:
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
