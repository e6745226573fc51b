"""A study and a model for tests of the framework: no torch, no network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import polars as pl

from prejudge.core.catalogue.plugins import Plugged, Plugins, Registered
from prejudge.core.catalogue.registry import ModelEntry, Registry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import built_in_registry
from prejudge.core.contracts import (
    Counting,
    Estimate,
    LargeStage,
    Metric,
    Options,
    Probe,
    Stage,
    Trial,
    Unreadable,
)
from prejudge.core.contracts.adapter import Identity, Limits, ModelAdapter
from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import (
    AnyResponse,
    Generate,
    Generation,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
)


def ask(text: str, **fields: Any) -> Generate:
    """Return a request."""
    settings: dict[str, Any] = {"sampling": Sampling(temperature=0.0), **fields}
    return Generate(messages=(Message("user", (Text(text),)),), **settings)


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True):
    model: str = "fake"
    batch: int = 4
    concurrency: int = 2


class FakeModel(ModelAdapter):
    """Answers with the prompt in capitals; `script` may answer otherwise, or raise."""

    options = FakeOptions
    made: ClassVar[list[FakeModel]] = []
    script: ClassVar[Callable[[Generate, int], Any] | None] = None
    delay: ClassVar[float] = 0.0

    def __init__(self, options: FakeOptions) -> None:
        self.identity = Identity(adapter="fake", version="1", model=options.model)
        self.limits = Limits(concurrency=options.concurrency, batch_items=options.batch)
        self.calls: list[list[Generate]] = []
        self.busy = self.most_busy = 0
        self.closed = False
        FakeModel.made.append(self)

    @property
    def asked(self) -> list[str]:
        return [text_of(request) for call in self.calls for request in call]

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        self.calls.append(list(requests))
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await asyncio.sleep(FakeModel.delay)
            return [self._answer(request) for request in requests]
        finally:
            self.busy -= 1

    def _answer(self, request: Generate) -> Generation | ModelError:
        seen = self.asked.count(text_of(request)) - 1
        answer = FakeModel.script(request, seen) if FakeModel.script else None
        if isinstance(answer, Exception) and not isinstance(answer, ModelError):
            raise answer
        return answer if answer is not None else Generation(text=text_of(request).upper())

    async def aclose(self) -> None:
        self.closed = True


def text_of(request: Generate) -> str:
    part = request.messages[-1].parts[0]
    assert isinstance(part, Text)
    return part.text


class CountOptions(Options, frozen=True, kw_only=True):
    n: int = 10
    """Trials."""
    distinct: int = 1_000_000
    """Different prompts among them."""
    max_attempts: int = 1
    words: tuple[str, ...] = ("q",)


class CountStage(LargeStage):
    name = "count"
    operation: ClassVar[type[Request]] = Generate
    factors = ("number", "parity")
    outcomes = ("length",)
    counting = Counting(by=("parity",), unit="question")

    def __init__(self, options: CountOptions) -> None:
        self._options = options
        self.rules = msgspec.structs.replace(self.rules, attempts=options.max_attempts)  # type: ignore[misc]

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        for i in range(self._options.n):
            request = ask(f"{self._options.words[0]} {i % self._options.distinct}")
            yield Trial(f"t{i}", {"number": i, "parity": "odd" if i % 2 else "even"}, request)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        assert isinstance(response, Generation)
        return Unreadable("empty") if not response.text else {"length": len(response.text)}


class CountProbe(Probe):
    options = CountOptions

    def stages(self, options: CountOptions) -> Sequence[Stage]:
        return [CountStage(options)]


class MeanLength(Metric):
    needs = frozenset({"length", "status"})

    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        ok = observations.filter(pl.col("status") == "ok")
        mean = ok["length"].mean() if ok.height else None
        missing = dict(observations.filter(pl.col("status") != "ok").group_by("status").len().iter_rows())
        return [Estimate.from_flat(metric="mean_length", group={}, value=mean, n=ok.height, missing=missing)]  # type: ignore[arg-type]

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        return f"The mean length is {estimates[0].value}."


class NeedsMore(MeanLength):
    needs = frozenset({"weight"})


def fake_catalogue(**studies: StudyEntry) -> Catalogue:
    """Return a catalogue of fakes: study `count`, models `fake` and `other`."""
    registry = Registry(
        models={name: ModelEntry(adapter="fake", settings={"model": name}) for name in ("fake", "other")},
        studies={"count": StudyEntry(probe="count", metrics={"mean": {}}, title="Counting"), **studies},
        defaults=built_in_registry().defaults,
    )
    plugins = Plugins(registry, found=[])
    offers = {
        "adapter": [Plugged("fake", FakeModel)],
        "probe": [Plugged("count", CountProbe)],
        "metric": [Plugged("mean", MeanLength), Plugged("needs-more", NeedsMore)],
    }
    for kind, things in offers.items():
        plugins.offers[kind].update({thing.name: Registered(thing, "tests") for thing in things})
    return Catalogue(registry, plugins)
