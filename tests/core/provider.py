"""A provider of batches in this process: it answers with the fake's model, and misbehaves as it is told."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from prejudge.core.contracts.batch import (
    BatchCancelledError,
    BatchExpiredError,
    BatchLimits,
    BatchLine,
    BatchStatus,
)
from prejudge.core.contracts.canonical import decode_request, encode
from prejudge.core.contracts.errors import ModelError, PermanentError, TransientError
from prejudge.core.contracts.records import AnyRequest, AnyResponse, Generate, Generation, Request, Usage

ASKS = "status", "find", "results"


class Killed(BaseException):
    """A process that ends at this point, and does nothing more."""


@dataclass
class Held:
    """A batch at the provider."""

    mark: str
    lines: list[bytes]
    polls: int = 0
    end: str = "ended"
    problem: str = ""
    gone: bool = False


@dataclass
class Provider:
    """All batches, and what was charged for."""

    limits: BatchLimits = BatchLimits(items=1000, bytes=1_000_000)
    takes: frozenset[type[Request]] = frozenset({Generate})
    batches: dict[str, Held] = field(default_factory=dict)
    files: dict[str, list[bytes]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    charged: Counter[str] = field(default_factory=Counter)
    """Answers by key that would be on the bill."""
    polls: int = 1
    """Looks at a batch until it has ended."""
    marks: bool = True
    """Whether it keeps marks."""
    before: Callable[[str], None] = lambda step: None
    """Called before each call is answered; may raise what the caller sees, with nothing done."""
    after: Callable[[str], None] = lambda step: None
    """The same, when everything was done."""
    items: Callable[[str, Generate, int], Any] = lambda name, request, tried: None
    """What becomes of an item: an answer, an error, `expired`, `cancelled` or `nothing`; None: an answer as usual."""
    twist: Callable[[list[BatchLine]], list[BatchLine]] = lambda lines: lines
    on_submit: Callable[[Held], None] = lambda held: None
    tried: Counter[str] = field(default_factory=Counter)

    async def encode(self, name: str, request: AnyRequest) -> bytes:
        return b'{"name": "%s", "request": %s}' % (name.encode(), encode(request))

    async def upload(self, mark: str, lines: Sequence[bytes]) -> str:
        self._step("upload", begin=True)
        name = f"file-{len(self.files)}"
        self.files[name] = list(lines)
        self._step("upload")
        return name

    async def submit(self, mark: str, file: str, lines: Sequence[bytes], kind: type[Request]) -> BatchStatus:
        self._step("submit", begin=True)
        held = Held(mark, self.files[file] if file else list(lines))
        assert len(held.lines) <= self.limits.items
        assert sum(len(line) + 1 for line in held.lines) <= self.limits.bytes
        name = f"batch-{len(self.batches)}"
        self.batches[name] = held
        self.on_submit(held)
        self._step("submit")
        return self._status(name)

    async def find(self, mark: str, since: float) -> list[BatchStatus]:
        self._step("find", begin=True)
        return [self._status(name) for name, held in self.batches.items() if not held.gone]

    async def status(self, batch: str) -> BatchStatus:
        self._step("status", begin=True)
        held = self.batches[batch]
        if held.gone:
            return BatchStatus(id=batch, state="missing")
        held.polls += 1
        status = self._status(batch)
        self._step("status")
        return status

    async def results(self, status: BatchStatus) -> list[BatchLine]:
        self._step("results", begin=True)
        held = self.batches[status.id]
        lines = [one for line in held.lines if (one := self._answer(held, line)) is not None]
        random.Random(len(lines)).shuffle(lines)
        return self.twist(lines)

    def read(self, line: BatchLine, request: AnyRequest) -> AnyResponse | ModelError:
        found = json.loads(line.body)
        if (error := found.get("error")) is not None:
            kinds = {"expired": BatchExpiredError, "cancelled": BatchCancelledError, "transient": TransientError}
            return kinds.get(error, PermanentError)(error)
        return msgspec.convert(found["answer"], Generation)

    async def cancel(self, batch: str) -> None:
        self._step("cancel", begin=True)
        self.batches[batch].end = "cancelled"
        self.batches[batch].polls += self.polls

    def _step(self, step: str, *, begin: bool = False) -> None:
        self.calls[step] += begin
        (self.before if begin else self.after)(step)

    def _status(self, name: str) -> BatchStatus:
        held = self.batches[name]
        state = held.end if held.polls >= self.polls or held.end in ("invalid", "full") else "running"
        mark = held.mark if self.marks else ""
        return BatchStatus(
            id=name, state=state, mark=mark, items=len(held.lines), problem=held.problem, files=(name,), created=None
        )  # fmt: skip

    def _answer(self, held: Held, line: bytes) -> BatchLine | None:
        found = json.loads(line)
        name = found["name"]
        request = decode_request(json.dumps(found["request"]))
        assert isinstance(request, Generate)
        place = f"{held.mark} {name}"
        if place not in self.tried:
            self.tried[place] = sum(1 for one in self.tried if one.endswith(name)) + 1
        told = self.items(name, request, self.tried[place] - 1)
        if told == "nothing":
            return None
        if isinstance(told, str):
            return BatchLine(name, json.dumps({"error": told}).encode())
        if told is None:
            part = request.messages[-1].parts[0]
            told = Generation(text=part.text.upper(), usage=Usage(input_tokens=5, output_tokens=2))
        if f"{place} charged" not in self.charged:
            self.charged[f"{place} charged"] = 1
        return BatchLine(name, json.dumps({"answer": msgspec.to_builtins(told)}).encode())

    @property
    def paid(self) -> Counter[str]:
        """Return how often an answer to each key is on the bill."""
        return Counter(place.split()[1] for place in self.charged)


__all__ = ["Held", "Killed", "Provider", "replace"]
