"""Fixtures for tests of the framework."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "prejudge",
    max_examples=100,
    # Generous: other work on the machine must not fail a test. A hang still does.
    deadline=timedelta(seconds=10),
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("prejudge")


def _share(name: str) -> Any:
    """Load a module that several test modules share; under importlib mode a test folder is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec and spec.loader
    if name not in sys.modules:
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


fakes = _share("fakes")
children = _share("children")
virtual = _share("virtual")
postgres = _share("postgres")
_share("strategies")
_share("hostile")
_share("browsed")
_share("provider")

from prejudge.core.engine.runs import RunOptions, execute  # noqa: E402
from prejudge.core.store import Store  # noqa: E402


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that says `EVERY_STORE = True` on every kind of store."""
    if getattr(metafunc.module, "EVERY_STORE", False) and "place" in metafunc.fixturenames:
        metafunc.parametrize("place", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """Return a running PostgreSQL, or skip."""
    if (reason := postgres.missing()) is not None:
        pytest.skip(reason)
    with postgres.cluster() as started:
        yield started


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a process that forks others, which need not import anything then."""
    with children.Nursery(tmp_path_factory.mktemp("nursery")) as started:
        yield started


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a new store may be made: a file, or the url of an empty database."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return str(tmp_path / "store.db")
    return str(request.getfixturevalue("postgresql").new_database())


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let queries take 50 keys, not thousands, so that few rows need several; return their number."""
    for name, module in list(sys.modules.items()):
        if name.startswith("prejudge.core.store.") and hasattr(module, "LOOKUP"):
            monkeypatch.setattr(module, "LOOKUP", 50)
    return 50


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store that holds nothing: copied, it is a new one five times as fast."""
    path = tmp_path_factory.mktemp("blank") / "store.db"
    Store(path).close()
    return path


@pytest.fixture
def store(place: str, blank: Path) -> Iterator[Store]:
    """Return a new store."""
    if "://" not in place:
        shutil.copyfile(blank, place)
    with Store(place) as opened:
        yield opened


@pytest.fixture
def catalogue() -> Iterator[Any]:
    """Return the catalogue of fakes, with a model that has no history."""
    fakes.FakeModel.made.clear()
    yield fakes.fake_catalogue()
    fakes.FakeModel.script, fakes.FakeModel.delay = None, 0.0


@pytest.fixture
def run_study(catalogue: Any, store: Store) -> Any:
    """Return a function that runs the study `count` and gives the run's name and the model that was asked."""

    def run(model: str = "fake", told: RunOptions = RunOptions(), **options: Any) -> tuple[str, Any]:  # noqa: B008
        how = {key: options.pop(key) for key in ("mode", "name") if key in options}
        study = catalogue.study("count", {"subject": model}, options)
        done = asyncio.run(execute(catalogue, study, store, msgspec.structs.replace(told, **how)))
        return done, fakes.FakeModel.made[-1]

    return run
