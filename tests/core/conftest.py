"""Fixtures for tests of the framework."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# The fakes are shared by several test modules; under importlib mode a test folder is no package to import from.
_spec = importlib.util.spec_from_file_location("fakes", Path(__file__).with_name("fakes.py"))
assert _spec and _spec.loader
fakes = sys.modules.setdefault("fakes", importlib.util.module_from_spec(_spec))
if not hasattr(fakes, "FakeModel"):
    _spec.loader.exec_module(fakes)

from prejudge.core.runs import RunOptions, execute  # noqa: E402
from prejudge.core.store import Store  # noqa: E402


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a new store."""
    with Store(tmp_path / "store.db") as opened:
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

    def run(model: str = "fake", mode: Any = "use", name: str | None = None, **options: Any) -> tuple[str, Any]:
        study = catalogue.study("count", {"subject": model}, options)
        done = asyncio.run(execute(catalogue, study, store, RunOptions(mode=mode, name=name)))
        return done, fakes.FakeModel.made[-1]

    return run
