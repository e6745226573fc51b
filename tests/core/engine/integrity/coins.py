"""A study that repeats its prompts, and models behind a server: one that samples, and others."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from fakes import fake_catalogue

from prejudge import statistics
from prejudge.adapters.openai.adapter import OpenAIApi
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Options, Probe, Stage, Trial
from prejudge.core.contracts.records import Generate, Generation, Likelihood, Message, Sampling, Text
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.statistics.declared import DeclaredMetric
from prejudge.core.store import get_run


class CoinOptions(Options, frozen=True, kw_only=True):
    prompts: int = 30
    samples: int = 4
    temperature: float | None = 0.7
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    lengths: int = 0
    """Characters by which each prompt is longer than the one before."""
    top_logprobs: int = 0
    scored: bool = False
    """Ask for likelihoods in place of answers."""


class CoinStage(Stage):
    name = "coin"
    operation: ClassVar[Any] = Generate
    factors = ("item", "sample")
    outcomes = ("yes",)

    def __init__(self, options: CoinOptions) -> None:
        self.chosen = options

    def trials(self, earlier: Any) -> Iterator[Trial]:
        own = self.chosen
        sampling = Sampling(temperature=own.temperature, max_tokens=own.max_tokens, stop=own.stop)
        for item in range(own.prompts):
            text = f"Item {item}: yes or no?" + " and" * (item * own.lengths // 4)
            for sample in range(own.samples):
                request = Generate(
                    messages=(Message("user", (Text(text),)),),
                    sampling=sampling,
                    sample=sample,
                    top_logprobs=own.top_logprobs,
                )
                yield Trial(f"{item}/{sample}", {"item": item, "sample": sample}, request)

    def read(self, factors: Any, response: Any) -> dict[str, float]:
        assert isinstance(response, Generation)
        return {"yes": float(response.text.lower().startswith("yes"))}


class ScoredStage(CoinStage):
    operation: ClassVar[Any] = Likelihood

    def trials(self, earlier: Any) -> Iterator[Trial]:
        for item in range(self.chosen.prompts):
            request = Likelihood(prompt=f"Item {item} is", continuations=(f" good {item}", f" bad {item}"))
            yield Trial(str(item), {"item": item, "sample": 0}, request)

    def read(self, factors: Any, response: Any) -> dict[str, float]:
        return {"yes": float(response.scores[0].log_probability > response.scores[1].log_probability)}


class CoinProbe(Probe):
    options = CoinOptions

    def stages(self, options: CoinOptions) -> Sequence[Stage]:
        return [ScoredStage(options) if options.scored else CoinStage(options)]


class Share(DeclaredMetric):
    options = statistics.MarginOptions
    measures = (statistics.Mean("share", value="yes", neutral=0.5),)


def share_of(prompt: str) -> float:
    """Return how likely a yes is to a prompt."""
    return int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big") / 2**32


def coin(path: str, body: dict[str, Any], certain: bool = False) -> dict[str, Any]:
    """Answer as a model that samples, with the seed of the body or one of its own."""
    prompt = body["messages"][-1]["content"]
    hot = body.get("temperature", 1.0) > 0
    numbers = random.Random(body.get("seed") if hot else prompt)
    if prompt.startswith("Write"):
        text = " ".join(f"{numbers.randrange(16**6):06x}" for _ in range(20))
    else:
        draw = numbers.random() if hot and not certain else 0.5
        text = "yes" if draw < share_of(prompt) else "no"
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": max(1, len(text) // 4)}
    message = {"role": "assistant", "content": text}
    return {
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }


def sure(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Answer as a model that samples, and is sure of every answer of the study."""
    return coin(path, body, certain=True)


def saying(*texts: str, status: str = "stop"):
    """Return a model that says these texts in turn, whatever it is asked."""
    count = iter(range(1 << 30))

    def model(path: str, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": texts[next(count) % len(texts)]}
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        return {"choices": [{"index": 0, "message": message, "finish_reason": status}], "usage": usage}

    return model


def catalogue_of(url: str, **settings: Any) -> Catalogue:
    """Return a catalogue with the study `coins` and the model `tiny` behind an address."""
    fakes = fake_catalogue(
        coins=StudyEntry(probe="coins", metrics={"share": {"intervals": "jackknife"}}, title="Coins")
    )
    settings = {"model": "tiny", "base_url": url, "api_key_env": "", "timeout_seconds": 20.0, **settings}
    models = {"tiny": ModelEntry(adapter="openai", settings=settings)}
    catalogue = Catalogue(type(fakes.registry)(models=models, studies=fakes.registry.studies), fakes.plugins)
    for kind, name, part in (
        ("adapter", "openai", OpenAIApi),
        ("probe", "coins", CoinProbe),
        ("metric", "share", Share),
    ):
        catalogue.plugins.offers[kind][name] = Registered(Plugged(name, part), "tests")
    return catalogue


def perform(store: Any, catalogue: Catalogue, run: RunOptions | None = None, **options: Any) -> Any:
    """Run the study, and return the manifest."""
    study = catalogue.study("coins", {"subject": "tiny"}, options)
    asyncio.run(execute(catalogue, study, store, run or RunOptions()))
    return manifest_of(get_run(store, "latest"))
