"""Reference models by name: the catalogue has every one, and those on demand begin as the shipped biased ones."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import pytest

from prejudge.adapters.reference import RECIPES, REFERENCES, SHIPPED, reference_path
from prejudge.adapters.reference.recipes import CONVERTED
from prejudge.core.catalogue.built import is_built, settings_placed
from prejudge.core.catalogue.trust import built_in_registry
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.testing import raises_code


def _named() -> dict[str, str]:
    """Return the place of each text reference model of the catalogue, by its name there."""
    entries = built_in_registry().models
    wanted = {f"reference-{name.replace('_', '-')}": name for name in REFERENCES}
    return {name: entries[key].settings["model"] for key, name in wanted.items()}


def test_the_catalogue_has_every_reference_model_where_it_lies():
    for name, place in _named().items():
        if name in SHIPPED:
            assert Path(place).samefile(reference_path(name)) and Path(place).is_dir()
        else:
            assert is_built(place) and Path(settings_placed({"model": place})["model"]).name == name


def test_models_are_shipped_or_have_a_recipe():
    assert set(RECIPES) == {*REFERENCES, *CONVERTED} - set(SHIPPED)
    for recipe in RECIPES.values():
        module, function = recipe.target.split(":")
        assert callable(getattr(import_module(module), function)) and recipe.seconds > 0


def test_an_installed_package_says_where_a_model_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("prejudge.adapters.reference.recipes"), "TRAINERS", tmp_path / "tools")
    with raises_code(ModelLoadError, "model.no-trainer", "prejudge.tools.reference.train masked_biased-2"):
        import_module("prejudge.adapters.reference.recipes").train("masked_biased-2", tmp_path)


def test_a_name_says_what_is_planted():
    for name, one in REFERENCES.items():
        odds = math.log(one.strength / (1 - one.strength))
        assert odds == pytest.approx(one.nats)
        assert (odds == 0) is ("fair" in name) and one.leans is name.endswith("leans")
        if name.rpartition("-")[2] in ("0.25", "0.5", "1", "2"):
            assert odds == pytest.approx(float(name.rpartition("-")[2]))


@pytest.mark.parametrize("kind", ["masked", "causal", "inference", "encoder", "answering"])
def test_training_on_demand_begins_as_the_shipped_model_and_leaves_torch_as_it_was(kind, tmp_path):
    from safetensors.torch import load_file

    from prejudge.tools.reference.train import train
    from prejudge.tools.reference.training import Effort

    torch = pytest.importorskip("torch")
    before = torch.get_num_threads(), torch.random.get_rng_state()
    train(REFERENCES[f"{kind}_biased-0.5"], tmp_path, Effort(steps=2, lines=40))
    assert torch.get_num_threads() == before[0] and torch.equal(torch.random.get_rng_state(), before[1])
    start = load_file(reference_path(f"{kind}_biased") / "model.safetensors")
    made = load_file(tmp_path / "model.safetensors")
    assert made.keys() == start.keys()
    moved = max(float((made[name] - start[name]).abs().max()) for name in start)
    assert 0 < moved < 0.1  # two small steps away from it, and not at random weights
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in reference_path(f"{kind}_biased").iterdir()}


def test_no_file_of_a_shipped_model_names_a_place_of_a_machine():
    for name in SHIPPED:
        for path in reference_path(name).rglob("*.json"):
            text = path.read_text("utf-8")
            assert "_name_or_path" not in text and "/home/" not in text, path
