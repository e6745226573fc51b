"""The catalogue: strict, with errors that name the nearest name."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.registry import parse_registry
from prejudge.core.catalogue.trust import load_registry
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.testing import raises_code


def test_built_in_catalogue_is_sound():
    registry = load_registry()
    assert not registry.studies and not registry.probes
    assert all(model.adapter in registry.adapters for model in registry.models.values())


def test_own_registry_adds_and_overrides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "registry.toml").write_text('[models.mine]\nadapter = "hf-masked"\nsettings = { model = "./bert" }\n')
    registry = load_registry()
    assert registry.models["mine"].settings == {"model": str(tmp_path / "bert")}
    assert "reference-masked-fair" in registry.models


def test_defaults_and_galleries_of_ones_own_registry(tmp_path):
    path = tmp_path / "registry.toml"
    path.write_text("""
[defaults]
calibrate = "mine"
[adapters.mine]
target = "my_package:Mine"
gallery = "./fair.toml"
""")
    registry = load_registry(path)
    assert registry.defaults == load_registry().defaults | {"calibrate": "mine"}
    assert registry.adapters["mine"].gallery == str(tmp_path / "fair.toml")
    path.write_text('[defaults]\ncalibrat = "mine"\n')
    with raises_code(DataError, "registry.entry", "calibrat"):
        load_registry(path)


def test_mistake_in_own_registry_names_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "registry.toml").write_text("[modells.x]\nadapter = 'a'\n")
    with raises_code(UnknownNameError, "unknown-key", tmp_path, "'modells'"):
        load_registry()


def test_named_registry_must_be_there(tmp_path):
    with raises_code(DataError, "file.unreadable"):
        load_registry(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[modells.x]\nadapter='a'", ["'modells' of my.toml", "'models'"]),
        ("[models.x]\nadaptor='a'", ["'adaptor' of model 'x' in my.toml", "'adapter'"]),
        ("[models.x]\nprices={inptu=1}", ["'inptu' of prices of model 'x'", "'input'"]),
        ("[[studies.x.published]]\nmesure='a'", ["'mesure' of published 1 of study 'x'", "'measure'"]),
    ],
)
def test_unknown_key_names_its_entry_and_the_nearest(text, named):
    with raises_code(UnknownNameError, "unknown-key", *named):
        parse_registry(text, "my.toml")


@pytest.mark.parametrize(
    ("text", "entry", "key"),
    [
        ("probe='p'", "study 'bad'", "'metrics'"),
        (
            "probe='p'\nmetrics={}\n[[studies.bad.published]]\nmeasure='a'",
            "study 'bad'",
            "published 1: the key 'value'",
        ),
        ("probe='p'\nmetrics={}\nlimits=3", "study 'bad'", "limits"),
    ],
)
def test_wrong_entry_is_named_with_its_key(text, entry, key):
    good = "[studies.good]\nprobe='p'\nmetrics={}\n"
    with raises_code(DataError, "registry.entry", "my.toml", entry, key) as caught:
        parse_registry(f"{good}[studies.bad]\n{text}", "my.toml")
    assert caught.value.fields["entry"] == entry


def test_wrong_type_says_where():
    with raises_code(DataError, "registry.entry", "my.toml"):
        parse_registry("[models.x]\nadapter = 3", "my.toml")


def test_broken_toml_says_where():
    with raises_code(DataError, "data.syntax", "my.toml"):
        parse_registry("[models", "my.toml")


def test_package_path_is_found():
    settings = parse_registry(
        "[models.x]\nadapter='a'\nsettings={model='package:prejudge.probes.dora/data'}", "t"
    ).models
    assert settings["x"].settings["model"].endswith("probes/dora/data")


def test_model_by_adapter_and_place():
    registry = load_registry()
    assert registry.model("hf-masked:./bert").settings == {"model": "./bert"}
    with raises_code(UnknownNameError, "unknown-adapter", "'hf-masked'"):
        registry.model("hf-maskd:./bert")
    with raises_code(UnknownNameError, "unknown-model", "'reference-masked-fair'", "ADAPTER:MODEL"):
        registry.model("reference-masked-fairr")


def test_adapter_without_a_model_says_how_to_name_one():
    with raises_code(UsageError, "registry.model-missing", "'hf-masked'", "hf-masked:MODEL"):
        load_registry().model("hf-masked")
