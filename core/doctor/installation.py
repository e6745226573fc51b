"""Facts about the installation: packages, plugins, devices and the store.

Packages are looked up in their metadata and not imported; only torch is imported, to list the devices.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from ..catalogue.packages import requirements_of
from ..catalogue.plugins import Plugins
from ..contracts.errors import PrejudgeError
from ..contracts.installing import PACKAGE, install_line
from ..contracts.version import VERSION
from ..store import Store, list_runs
from ..store.engine import file_of, lacks_file
from ..store.file_systems import describe_network, network_type_of
from ..store.urls import show, store_url


class Fact(msgspec.Struct, frozen=True):
    """A fact about the installation."""

    part: str
    """Its topic: `extra`, `device`, `store` ..."""
    name: str
    detail: str
    wrong: bool = False
    """Whether it must be fixed; an extra that is not installed is not wrong."""


def look_around(plugins: Plugins, store: str) -> list[Fact]:
    """Return all facts about this installation."""
    return [*_base(), *_extras(), *_plugins(plugins), *devices(), _store(store), *_file_system(store)]


def _base() -> Iterator[Fact]:
    yield Fact("prejudge", VERSION, str(Path(__file__).resolve().parents[1]))
    yield Fact("python", platform.python_version(), f"{platform.system()} {platform.machine()}, {sys.executable}")


def _extras() -> Iterator[Fact]:
    """Yield a fact per extra: complete, or the missing packages and the command that installs them."""
    for extra, wanted in sorted(requirements_of(PACKAGE).items()):
        lacking = [text for requirement in wanted if (text := lack_of(requirement)) is not None]
        mend = f"lacks {', '.join(lacking)}: {install_line(extra)}"
        yield Fact("extra", extra, mend if lacking else ", ".join(_with_version(wanted)))


def lack_of(requirement: Requirement) -> str | None:
    """Return the missing or outdated package of a requirement; None if it is met."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name}{requirement.specifier}"
    met = requirement.specifier.contains(found, prereleases=True)
    return None if met else f"{requirement.name}{requirement.specifier} (is {found})"


def _with_version(requirements: list[Requirement]) -> Iterator[str]:
    for requirement in requirements:
        yield f"{requirement.name} {version(requirement.name)}"


def _plugins(plugins: Plugins) -> Iterator[Fact]:
    for name in plugins.loaded:
        yield Fact("plugin", name, "loaded")
    for problem in plugins.problems:
        yield Fact("plugin", "", problem, wrong=True)


def devices() -> Iterator[Fact]:
    """Yield the devices that torch finds, or a note that torch is not installed."""
    if find_spec("torch") is None:
        yield Fact("device", "", "unknown: torch is not installed")
        return
    try:
        torch = import_module("torch")
    except (ImportError, OSError) as error:  # OSError: a CUDA library cannot be loaded
        yield Fact("device", "", f"unknown: torch cannot be imported: {error}", wrong=True)
        return
    for number in range(torch.cuda.device_count()):
        seen = torch.cuda.get_device_properties(number)
        yield Fact("device", f"cuda:{number}", f"{seen.name}, {seen.total_memory / 2**30:.0f} GiB")
    if torch.backends.mps.is_available():
        yield Fact("device", "mps", platform.processor() or "Apple")
    yield Fact("device", "cpu", f"{torch.get_num_threads()} threads")


def _store(where: str) -> Fact:
    """Return the path and content of the store; a store that does not exist yet is not wrong."""
    try:
        url = store_url(where)
        place = str(Path(url.database).absolute()) if url.database and "://" not in where else show(url)
        if lacks_file(url):
            return Fact("store", place, "does not exist yet; the first run creates it")
        with Store(where, writable=False) as store:
            runs = len(list_runs(store))
    except PrejudgeError as error:
        return Fact("store", where if "://" not in where else "", str(error), wrong=True)
    return Fact("store", place, f"{runs} {'run' if runs == 1 else 'runs'}")


def _file_system(where: str) -> Iterator[Fact]:
    """Yield what to do about a store on a network file system."""
    try:
        path = file_of(store_url(where))
    except PrejudgeError:
        return  # `_store` says so
    if path is not None and (kind := network_type_of(path)) is not None:
        yield Fact("store", "", describe_network(str(path), kind))
