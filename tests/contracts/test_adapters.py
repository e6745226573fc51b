"""Every adapter of the catalogue keeps the contract, by the kit that third parties run."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest

from prejudge.core.catalogue.plugins import load_target
from prejudge.core.contracts.abilities import OPERATIONS, methods_of
from prejudge.core.contracts.adapter import ModelAdapter, Services
from prejudge.core.contracts.options import build_options
from prejudge.testing import AdapterContract, ChaosServer

from .cases import CASES, Case

MAKE = """
from prejudge.core.contracts.options import build_options
from prejudge.core.catalogue.plugins import load_target
kind = load_target({target!r}, "tests")
adapter = kind(build_options("model", kind.options, {settings!r}))
"""


def keep(data: bytes, media_type: str) -> str:
    return hashlib.sha256(data).hexdigest()


def at(case: Case, settings: dict[str, Any], url: str, model: str) -> ModelAdapter:
    address = url if case.speaks is not None else f"{url}/v1"
    return maker(case, {**settings, case.endpoint: address, "model": model})()


def maker(case: Case, settings: dict[str, Any]) -> Callable[[], ModelAdapter]:
    def make() -> ModelAdapter:
        kind = load_target(case.target, "tests")
        adapter: ModelAdapter = kind(build_options("model", kind.options, settings))
        adapter.services = Services(blobs=case.blobs, keep=keep)
        return adapter

    return make


def changed(case: Case, settings: dict[str, Any], other: dict[str, Any]) -> Callable[[], ModelAdapter]:
    return maker(case, {**settings, **other})


def standing(case: Case, settings: dict[str, Any], other: dict[str, Any]) -> Callable[[str, str], ModelAdapter]:
    """Return how to make an adapter whose endpoint the kit stands in for."""
    return lambda url, model: maker(case, {**settings, case.endpoint: url, "model": model, **other})()


@pytest.fixture(scope="session")
def server_url() -> Iterator[Callable[[], str]]:
    """Return a function that starts a server that speaks OpenAI's API, once, and returns its address."""
    running: list[ChaosServer] = []

    def start() -> str:
        if not running:
            running.append(ChaosServer())
        return running[0].url

    yield start
    for server in running:
        server.close()


@pytest.fixture(scope="session")
def settings_of(
    tmp_path_factory: pytest.TempPathFactory, server_url: Callable[[], str]
) -> Callable[[str], tuple[dict[str, Any], Path]]:
    """Return the settings of a case and the folder of its model, which is made at the first use."""
    made: dict[str, tuple[dict[str, Any], Path]] = {}

    def get(name: str) -> tuple[dict[str, Any], Path]:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            settings = CASES[name].settings(folder)
            if CASES[name].endpoint:
                (folder / "key").write_text("sk-test-of-a-file")
            if name == "openai":
                settings["base_url"] = server_url()
            made[name] = settings, folder
        return made[name]

    return get


def within(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Put the folder's name into the settings that point into it."""
    return {k: v.format(folder=folder) if isinstance(v, str) and "{folder}" in v else v for k, v in settings.items()}


def contract(name: str, case: Case) -> type[AdapterContract]:
    """Return the kit for one adapter, as a class that pytest collects."""

    class Kit(AdapterContract):
        requests = case.requests
        tolerance = case.tolerance
        secrets = tuple(case.environment)

        @pytest.fixture(autouse=True)
        def _made(self, settings_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
            for variable, value in case.environment.items():
                monkeypatch.setenv(variable, value)
            if case.path is not None:
                monkeypatch.syspath_prepend(case.path)
                monkeypatch.setenv("PYTHONPATH", str(case.path), prepend=os.pathsep)
            settings, folder = settings_of(name)
            kit = type(self)
            kit.make = staticmethod(maker(case, settings))
            kit.ignores = case.ignores
            if case.endpoint:
                kit.at = staticmethod(lambda url, model: at(case, settings, url, model))
                kit.key_env = case.key_env
            if case.speaks is not None:
                kit.make, kit.speaks = None, case.speaks
            kit.recipe = MAKE.format(target=case.target, settings=settings)
            made = partial(standing, case, settings) if case.speaks is not None else partial(changed, case, settings)
            kit.others = [made(within(folder, other)) for other in case.others]
            kit.same = [made(within(folder, other)) for other in case.same]

    Kit.__name__ = Kit.__qualname__ = f"Test{name.title().replace('-', '')}"
    missing = [package for package in case.needs if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")(Kit)


for _name, _case in CASES.items():
    _kit = contract(_name, _case)
    globals()[_kit.__name__] = _kit
del _kit


def test_every_adapter_of_the_catalogue_has_a_case():
    catalogue = tomllib.loads((files("prejudge") / "registry.toml").read_text("utf-8"))["adapters"]
    assert {name: entry["target"] for name, entry in catalogue.items()} == {
        name: case.target for name, case in CASES.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_every_setting_is_judged(name):
    """A setting changes answers and the identity, or neither: a new one has to be put into the table."""
    case = CASES[name]
    fields = {field.name for field in msgspec.structs.fields(load_target(case.target, "tests").options)}
    assert fields == {key for each in (*case.others, *case.same) for key in each} | case.unjudged


@pytest.mark.parametrize("name", CASES)
def test_requests_cover_every_operation(name):
    case = CASES[name]
    operations = {OPERATIONS[type(request)] for request in case.requests}
    assert operations == methods_of(load_target(case.target, "tests"))
