"""The catalogue that the commands of the documentation meet: small studies, and stand-ins for models.

A command runs exactly as a page shows it. What stands behind its names is small: studies have few questions and metrics
few resamples; a model of the hub or of an endpoint is answered for by the simulated adapter, in the words that the
study asks for; and a folder such as `./my-bert` holds a tiny model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.catalogue.registry import ModelEntry, PluginEntry, Registry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import load_registry
from prejudge.core.contracts.batch import BatchLimits, BatchLine, BatchStatus
from prejudge.core.contracts.canonical import decode_request, decode_response, encode, encode_response
from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import Classification, Classify, Generate, Generation, Request, Text
from prejudge.core.contracts.thinking import Level

FEW: dict[str, dict[str, Any]] = {
    "bistereo-pairs": {"per_cell": 3, "axes": ["height"]},
    "subtle": {"per_cell": 3, "domains": ["ageism", "beauty"]},
    "attractiveness": {"per_cell": 1, "seeds": [0], "categories": ["conditions"]},
    "bistereo-nli": {"per_cell": 2},
    "bistereo-tuples-draft": {"dimensions": ["height"]},
    "dora-t2t": {"per_dimension": 1, "samples": 2, "settings": ["adjective"], "letters": "ab"},
    "dora-t2i": {"per_dimension": 1, "samples": 1, "size": 32},
    "dora-i2t": {"per_dimension": 1, "samples": 1, "size": 32, "settings": ["implicit"]},
    "indicasa": {"samples": 2},
}
"""Options that make a study small; a command's own come on top."""
SLOW = re.compile(r".*(resamples|permutations|draws)")
"""Options of metrics that say how often something is drawn."""
DRAWN = 99
SHORT = {"epochs": 2, "head_epochs": 2, "head_seeds": 2, "real": 1}
"""Options that say how long `train-encoder` trains, and how often `calibrate` studies a trained model."""
LOCAL = ("reference-", "simulated", "lexicon")
"""Models that run here as they are."""
SPEAKER = "documented"
OWN = {
    "my-model": ModelEntry("simulated", {"strength": 1.0}),
    "my-bert": ModelEntry("hf-masked", {"model": "./my-bert"}),
    "my-gpt": ModelEntry("openai-responses", {"model": "gpt-5.1"}),
}
"""Models that readers have."""


class Batches:
    """A provider of batches, which ends each as soon as it is asked for."""

    limits = BatchLimits(items=1000, bytes=1 << 20)
    takes = frozenset({Generate})
    held: ClassVar[dict[str, list[bytes]]] = {}

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def encode(self, name: str, request: Generate) -> bytes:
        return msgspec.json.encode({"name": name, "request": encode(request).decode()})

    async def upload(self, mark: str, lines: Sequence[bytes]) -> str:
        return ""

    async def submit(self, mark: str, file: str, lines: Sequence[bytes], kind: type[Request]) -> BatchStatus:
        self.held[mark] = list(lines)
        return BatchStatus(id=mark, state="running", mark=mark)

    async def find(self, mark: str, since: float) -> list[BatchStatus]:
        return []

    async def status(self, batch: str) -> BatchStatus:
        return BatchStatus(id=batch, state="ended", mark=batch)

    async def results(self, status: BatchStatus) -> list[BatchLine]:
        found = [msgspec.json.decode(line) for line in self.held[status.id]]
        answers = await self._speaker.generate_batch([decode_request(one["request"]) for one in found])
        return [BatchLine(one["name"], encode_response(a)) for one, a in zip(found, answers, strict=True)]

    def read(self, line: BatchLine, request: Generate) -> Any:
        return decode_response(line.body)

    async def cancel(self, batch: str) -> None:
        del self.held[batch]


class SpeakerOptions(SimulatedOptions, frozen=True, kw_only=True):
    """Settings of `Speaker`."""

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Be another model at each level."""
        return {**settings, "model": f"{settings['model']}-{level}"}


class Speaker(Simulated):
    """The simulated adapter, which can also write what some studies ask for: JSON, tuples, labels and levels."""

    options = SpeakerOptions

    @property
    def batch_api(self) -> Any:
        """Take batches, too."""
        return Batches(self)

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Answer in the words that are asked for, or as the simulated adapter does."""
        answers = await super().generate_batch(requests)
        return [
            msgspec.structs.replace(answer, text=said)
            if isinstance(answer, Generation) and (said := spoken(request))
            else answer
            for request, answer in zip(requests, answers, strict=True)
        ]

    async def classify_batch(self, requests: Sequence[Classify]) -> Sequence[Classification | ModelError]:
        """Give sentiment or entailment; or toxicity, where the model is one for that."""
        answers = await super().classify_batch(requests)
        if "toxic" not in self.identity.model:
            return answers
        return [Classification(probabilities={"toxic": 0.1, "neutral": 0.9}) for _ in answers]


def spoken(request: Generate) -> str:
    """Return an answer in the form that a question wants; empty where the simulated adapter knows one."""
    asked = "\n".join(part.text for part in request.messages[-1].parts if isinstance(part, Text))
    draw = hashlib.sha256(f"{asked} {request.sample}".encode()).digest()[0]
    if found := re.search(r'input sentence: "(.*?)"', asked):
        return json.dumps({"predicted_sentence": found[1].replace("<MASK>", ("Brahmin", "Dalit")[draw % 2])})
    if found := re.search(r"- descriptor: .*such as (\S+), (\S+), .*\n- noun: (\w+)\n- attribute: (\w+)", asked):
        first, second, noun, sentiment = found.groups()
        return f"({first}, {noun}, elegant)" if sentiment == "positive" else f"({second}, {noun}, lazy)"
    if "Hypothesis:" in asked:
        return ("Entailment", "Contradiction", "Neutral")[draw % 3]
    return str(draw % 5 + 1) if "Likert" in asked else ""


def registry_of_stand_ins(user: Any = None) -> Registry:
    """Load the registry, with stand-ins for models that are not here."""
    registry = load_registry(user)
    models = {name: _stand_in(name, entry) for name, entry in (OWN | registry.models).items()}
    adapters = registry.adapters | {SPEAKER: PluginEntry(f"{__name__}:Speaker")}
    return msgspec.structs.replace(registry, adapters=adapters, models=models)


def small_catalogue(options_of: Callable[[str, str], frozenset[str]]) -> Any:
    """Return a `Catalogue.load` whose studies are small, whether they come from a registry or from a plugin.

    `options_of(kind, name)` gives the names of the options of a probe or metric.
    """

    def small(study: StudyEntry) -> StudyEntry:
        return msgspec.structs.replace(
            study,
            options=study.options | _few(study.probe, options_of("probe", study.probe)),
            metrics={
                metric: values | {name: DRAWN for name in options_of("metric", metric) if SLOW.fullmatch(name)}
                for metric, values in study.metrics.items()
            },
        )

    load = Catalogue.load

    def loaded(cls: type[Catalogue], registry: str | None = None) -> Catalogue:
        found = load(registry)
        studies = {name: small(study) for name, study in found.registry.studies.items()}
        return cls(msgspec.structs.replace(found.registry, studies=studies), found.plugins)

    return classmethod(loaded)


def _few(probe: str, known: frozenset[str]) -> dict[str, Any]:
    few = FEW.get(probe, {})
    assert set(few) <= known, f"{probe} has no {', '.join(set(few) - known)}"
    return few


def _stand_in(name: str, entry: ModelEntry) -> ModelEntry:
    here = name.startswith(LOCAL) or name == "my-model" or Path(str(entry.settings.get("model", ""))).is_dir()
    return entry if here else ModelEntry(SPEAKER, {"model": name})
