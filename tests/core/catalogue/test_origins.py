"""Third-party code behind a number is on record: package, version, digest; without it, the package is named."""

from __future__ import annotations

import hashlib
import importlib
import sys

import msgspec
import pytest

from prejudge.core.catalogue import origins
from prejudge.core.catalogue.origins import Origin
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.compare.check import ensure_comparable
from prejudge.core.contracts.errors import UsageError
from prejudge.core.engine.manifest import Manifest
from prejudge.core.report.provenance import provenance
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import get_run
from prejudge.testing import raises_code

METRIC = "from fakes import MeanLength\n\nclass Mine(MeanLength):\n    factor = {factor}\n"


@pytest.fixture(autouse=True)
def fresh():
    """Forget what was digested, and what the test imports."""
    before = set(sys.modules)
    origins._origin.cache_clear()
    yield
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]
    origins._origin.cache_clear()


@pytest.fixture
def acme(tmp_path, monkeypatch, catalogue):
    """Return a function that installs a package with the metric `mean`, and gives its folder."""

    def install(factor=1, version="1.2"):
        folder = tmp_path / "site" / "acme_words"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("")
        (folder / "metric.py").write_text(METRIC.format(factor=factor))
        info = tmp_path / "site" / "acme_prejudge-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-prejudge\nVersion: {version}\n")
        for name in [name for name in sys.modules if name.startswith("acme_words")]:
            del sys.modules[name]
        origins._origin.cache_clear()
        importlib.invalidate_caches()
        offer = Plugged("mean", "acme_words.metric:Mine")
        catalogue.plugins.offers["metric"]["mean"] = Registered(offer, "acme-prejudge:acme")
        return folder

    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return install


def manifest(store, name):
    return msgspec.json.decode(get_run(store, name).manifest, type=Manifest)


def digest_of(folder):
    """Return the digest of a package, computed in another way."""
    lines = [
        f"{path.relative_to(folder)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in sorted(folder.rglob("*.py"))
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_each_part_is_on_record(run_study, store, acme, catalogue):
    folder = acme()
    name, _ = run_study(n=4)
    made = manifest(store, name).origins
    assert made["metric mean"] == Origin("acme_words", digest_of(folder), "acme-prejudge", "1.2")
    assert {part: origin.module for part, origin in made.items()} == {
        "probe count": "fakes",
        "metric mean": "acme_words",
        "adapter fake": "fakes",
    }
    scores = score(catalogue, store, name)
    assert scores.manifest.measured == {part: o for part, o in made.items() if not part.startswith("adapter")}
    assert digest_of(folder) in str(provenance(scores, store)) and str(folder.parent) not in str(made)
    assert not [warning for warning in warnings_of(scores) if "acme" in warning]


def test_parts_of_this_package_are_identified_by_its_version(catalogue):
    from prejudge.core.catalogue.study import Catalogue

    own = Catalogue.load()
    study = own.study("crows-pairs", {"subject": "simulated-fair"}, {})
    assert origins.origins(own, study) == {}


def test_scoring_with_other_code_is_told(run_study, store, acme, catalogue):
    acme()
    name, _ = run_study(n=4)
    acme(factor=2, version="1.3")
    (said,) = [warning for warning in warnings_of(score(catalogue, store, name)) if "acme" in warning]
    assert "metric mean" in said and "acme-prejudge 1.2" in said and "acme-prejudge 1.3" in said


def test_runs_with_other_code_are_told_apart(run_study, store, acme, catalogue):
    acme()
    one, _ = run_study(n=4)
    acme(factor=2)
    other, _ = run_study(n=4, model="other")
    notes = ensure_comparable(
        catalogue, {run: score(catalogue, store, run) for run in (one, other)}, allow_different=False
    )
    assert any("metric mean" in note and one in note and other in note for note in notes)


def test_without_the_package_its_name_is_given(run_study, store, acme, catalogue):
    acme()
    name, _ = run_study(n=4)
    mean = catalogue.plugins.offers["metric"].pop("mean")
    catalogue.plugins.offers["metric"]["means"] = mean
    with raises_code(UsageError, "plugin.missing", "mean", "pip install 'acme-prejudge==1.2'") as caught:
        score(catalogue, store, name)
    assert "'means'" not in str(caught.value) and caught.value.fields["package"] == "acme-prejudge"


def test_module_without_a_package_is_named(run_study, store, acme, catalogue):
    name, _ = run_study(n=4)
    del catalogue.plugins.offers["probe"]["count"]
    with raises_code(UsageError, "plugin.missing", "fakes", "PYTHONPATH"):
        score(catalogue, store, name)
