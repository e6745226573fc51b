"""Which packages a manifest lists: those of the adapters that answered."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version

import pytest
from fakes import FakeModel, fake_catalogue, text_of

from prejudge.core.catalogue.packages import adapter_packages, versions
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.engine.manifest import PACKAGES, manifest_of, with_versions
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import get_run


def test_adapter_of_the_catalogue_needs_the_packages_of_its_extra():
    catalogue = Catalogue.load()
    models = {entry.adapter: name for name, entry in catalogue.registry.models.items()}
    pytest.importorskip("torch")
    packages = adapter_packages(catalogue, [models["hf-causal"]])
    assert packages["torch"] == version("torch") and packages["transformers"] == version("transformers")
    assert "openai" not in packages and adapter_packages(catalogue, [models["simulated"]]) == {}


def add_package(monkeypatch, folder, requires):
    """Install a package with an adapter, and put it into a catalogue of fakes as its plugin."""
    info = folder / "third_party-3.1.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: third-party", "Version: 3.1", *(f"Requires-Dist: {r}" for r in requires)]
    (info / "METADATA").write_text("\n".join(lines), "utf-8")
    source = (
        "from prejudge.core.contracts import Options\nfrom prejudge.core.contracts.adapter import ModelAdapter\n"
        "class Theirs(ModelAdapter):\n    options = Options\n"
    )
    (folder / "third_party_code.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(folder)
    catalogue = fake_catalogue()
    plugged = Plugged("theirs", "third_party_code:Theirs", extra="fast")
    catalogue.plugins.offers["adapter"]["theirs"] = Registered(plugged, "third-party:models")
    catalogue.registry.models["m"] = ModelEntry(adapter="theirs")
    return catalogue


def test_adapter_of_another_package_needs_that_and_what_it_requires(monkeypatch, tmp_path):
    requires = ["prejudge>=0.1", "msgspec>=0.1", 'numpy; extra == "fast"', 'polars; extra == "other"', "not-installed"]
    catalogue = add_package(monkeypatch, tmp_path, requires)
    versions.cache_clear()
    try:
        found = adapter_packages(catalogue, ["m"])
    finally:
        versions.cache_clear()
        sys.modules.pop("third_party_code", None)
    assert found == {"msgspec": version("msgspec"), "numpy": version("numpy"), "third-party": "3.1"}


@pytest.fixture
def needing(catalogue, monkeypatch):
    """Return a mapping that says which packages, at which versions, the adapter of each model needs."""
    needed = {"fake": {"engine": "1"}, "other": {"judge": "7"}}
    monkeypatch.setattr(
        "prejudge.core.engine.runs.adapter_packages", lambda _, models: dict(needed[next(iter(models))])
    )
    return needed


def manifest(store, name):
    return manifest_of(get_run(store, name))


def test_manifest_lists_the_packages_of_adapters_that_answered(run_study, store, needing):
    name, _ = run_study(n=4)
    assert manifest(store, name).packages == dict(sorted({**versions(PACKAGES), "engine": "1"}.items()))
    cached, _ = run_study(n=4)
    assert "engine" not in manifest(store, cached).packages


def test_resumed_run_lists_both_versions(run_study, catalogue, store, needing):
    FakeModel.script = lambda request, seen: PermanentError("no") if text_of(request) == "q 9" else None
    name, _ = run_study(n=10)
    FakeModel.script = None
    needing["fake"] = {"engine": "2"}
    study = catalogue.study("count", {"subject": "fake"}, {"n": 10})
    asyncio.run(execute(catalogue, study, store, RunOptions(name=name)))
    assert manifest(store, name).packages["engine"] == "1, 2"


def test_versions_that_return_are_listed_once():
    assert with_versions({"a": "1, 2", "gone": "5"}, {"a": "1", "new": "3"}) == {"a": "1, 2", "gone": "5", "new": "3"}
