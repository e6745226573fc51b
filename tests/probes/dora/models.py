"""Models for tests of the dora studies, and a way to run a study on them: no torch, no network."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
import polars as pl

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Estimate, Metric
from prejudge.core.contracts.adapter import Identity, Limits, ModelAdapter
from prejudge.core.contracts.records import (
    Classification,
    Classify,
    Draw,
    Drawing,
    Generate,
    Generation,
    Image,
    Text,
)
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import Scores, score
from prejudge.core.store import Store


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    model: str = "scripted"


class Scripted(ModelAdapter):
    """Answers by functions of what it is shown: `words`, `image` and `labels`."""

    options = Settings
    words: Callable[[str, str | None, int], str] = staticmethod(lambda text, image, sample: "")  # type: ignore[assignment]
    image: Callable[[Draw], bytes | None] = staticmethod(lambda request: None)  # type: ignore[assignment]
    labels: Callable[[str], dict[str, float]] = staticmethod(lambda text: {"positive": 1.0, "negative": 0.0})  # type: ignore[assignment]

    def __init__(self, options: Settings) -> None:
        self.identity = Identity(adapter="scripted", version="1", model=options.model)
        self.limits = Limits(batch_items=64)

    async def generate(self, request: Generate) -> Generation:
        parts = request.messages[-1].parts
        text = "".join(part.text for part in parts if isinstance(part, Text))
        image = next((part.sha256 for part in parts if isinstance(part, Image)), None)
        return Generation(text=type(self).words(text, image, request.sample))

    async def classify(self, request: Classify) -> Classification:
        return Classification(probabilities=type(self).labels(request.text))

    async def draw(self, request: Draw) -> Drawing:
        data = type(self).image(request)
        if data is None:
            return Drawing(image=None, status="filtered")
        assert (
            self.services.keep is not None and self.services.keep(data, "image/png") == hashlib.sha256(data).hexdigest()
        )
        return Drawing(image=hashlib.sha256(data).hexdigest())


class Everything(Metric):
    """Looks at every stage and measures nothing."""

    needs: ClassVar[frozenset[str]] = frozenset()
    every_stage = True

    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        return []


def run_study(
    store: Store, probe: str, models: Mapping[str, str], options: Mapping[str, Any], **scripts: Any
) -> Mapping[str, pl.DataFrame]:
    """Run a probe and return the observations by stage; the model `scripted` answers by `scripts`."""
    return score_study(store, probe, models, options, **scripts).observations


def score_study(
    store: Store, probe: str, models: Mapping[str, str], options: Mapping[str, Any], **scripts: Any
) -> Scores:
    """Run a probe and return its scores."""
    kind = type("Told", (Scripted,), {name: staticmethod(script) for name, script in scripts.items()})
    catalogue = Catalogue.load()
    catalogue.plugins.offers["adapter"]["scripted"] = Registered(Plugged("scripted", kind), "tests")
    catalogue.registry.models["scripted"] = ModelEntry(adapter="scripted", settings={"model": "scripted"})
    catalogue.plugins.offers["metric"]["everything"] = Registered(Plugged("everything", Everything), "tests")
    catalogue.registry.studies["mine"] = StudyEntry(probe=probe, metrics={"everything": {}})
    study = catalogue.study("mine", models, options)
    name = asyncio.run(execute(catalogue, study, store, RunOptions()))
    return score(catalogue, store, name)
