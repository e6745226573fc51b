"""What a model can do: asked of its class and its settings, and of nothing heavier."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fakes import FakeModel, FakeOptions, fake_catalogue

from prejudge.core.catalogue.needs import ensure_suitable
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.errors import UnsupportedOperationError
from prejudge.testing import raises_code

OFFERS = """
import sys
from prejudge.core.catalogue.needs import ensure_suitable
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import UnsupportedOperationError

catalogue = Catalogue.load()
study = catalogue.study({study!r}, {{"subject": {model!r}}}, {{}})
try:
    ensure_suitable(catalogue, study, catalogue.instrument(study), planned=True)
except UnsupportedOperationError as error:
    print(*error.fields["able"])
print(*sorted({{"torch", "transformers", "openai", "diffusers", "llama_cpp"}} & set(sys.modules)), sep=", ")
"""


def offered(study, model):
    """Return the models that are named in place of one that cannot, and the heavy packages that were imported."""
    code = OFFERS.format(study=study, model=model)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    models, heavy = done.stdout.splitlines()
    return models.split(), heavy


def test_models_that_only_draw_are_not_offered_for_questions():
    models, heavy = offered("subtle-sai", "reference-masked-fair")
    assert "gpt-4o" in models and "simulated-fair" in models
    assert not {"dall-e-3", "dall-e-3-natural", "stable-diffusion-2"} & set(models)
    assert heavy == ""


def test_models_that_only_answer_are_not_offered_for_drawings():
    models, _ = offered("dora-t2i", "reference-masked-fair")
    assert {"dall-e-3", "dall-e-3-natural", "stable-diffusion-2"} < set(models) and "gpt-4o" not in models


@pytest.fixture
def choosy(monkeypatch):
    """Return a catalogue where the model `other` cannot generate, by its settings."""

    def abilities(options: FakeOptions):
        able = Abilities(operations=frozenset({"generate"}))
        return able.without({"generate": "Set a template."}) if options.model == "other" else able

    monkeypatch.setattr(FakeModel, "abilities", staticmethod(abilities))
    monkeypatch.setattr(FakeModel, "made", [])
    catalogue = fake_catalogue()
    catalogue.registry.models["broken"] = ModelEntry(adapter="fake", settings={"nonsense": 1})
    return catalogue


def test_settings_decide_and_say_how_to_mend_it(choosy):
    study = choosy.study("count", {"subject": "other"}, {})
    with raises_code(UnsupportedOperationError, "study.operation", "Set a template") as caught:
        ensure_suitable(choosy, study, choosy.instrument(study))
    assert (caught.value.code, caught.value.fields["able"]) == ("study.operation", ["fake"])
    able = choosy.study("count", {"subject": "fake"}, {})
    ensure_suitable(choosy, able, choosy.instrument(able))
    assert not FakeModel.made
