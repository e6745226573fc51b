"""`prejudge doctor` finds the models that come with the package sound, and a broken one not."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import ModelAdapter, Services
from prejudge.core.contracts.records import Generation, TokenScores
from prejudge.core.doctor.model import examine


def failures(adapter: ModelAdapter) -> list[str]:
    async def run() -> list[str]:
        adapter.services = Services(keep=lambda data, media_type: hashlib.sha256(data).hexdigest())
        try:
            return [check.name for check in await examine(adapter) if check.verdict == "fail"]
        finally:
            await adapter.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("strength", [0.0, 3.0])
def test_simulated_model_is_sound(seed, strength):
    assert failures(Simulated(SimulatedOptions(seed=seed, strength=strength))) == []


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("simulated-biased", "numpy"),
        ("lexicon", "vaderSentiment"),
        ("reference-masked-fair", "transformers"),
        ("reference-masked-biased", "transformers"),
    ],
)
def test_model_of_the_package_is_sound(name, package):
    pytest.importorskip(package)
    assert failures(Catalogue.load().adapter(name)) == []


class Broken(Simulated):
    """Scores the length of a text and answers everything alike."""

    async def pseudo_likelihood_batch(self, requests):
        return [TokenScores(log_probability=-float(len(request.text)), count=1) for request in requests]

    async def generate_batch(self, requests):
        return [Generation(text="Blue.")] * len(requests)


def test_broken_model_is_not():
    assert failures(Broken()) == [
        "pseudo_likelihood: a sentence is likelier than its words in random order",
        "generate: the seed has an effect",
        "generate: the model uses an image",
    ]
