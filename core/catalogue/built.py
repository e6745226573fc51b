"""Models that are made at their first use, into the user's cache folder: `model = "built:PACKAGE/NAME"`.

PACKAGE is an installed package that offers a `Recipe` of that name. The files are written into a new folder, which
takes its place when all of them are there, with a record of their digests; files that changed since are refused.
Training rounds differently on other processors, so the same recipe need not give the same bytes elsewhere.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from ..contracts.errors import DataError, ModelLoadError, UnknownNameError, UsageError
from ..contracts.files import user_folder
from ..contracts.recipe import Recipe
from .plugins import load_target

PREFIX = "built:"
CACHE = "PREJUDGE_CACHE"
"""Environment variable that names the folder of what is made on this machine and can be made again."""
RECORD = "built.json"
ABANDONED = 3600.0
"""Seconds after which an unfinished model is that of a process that was ended: none takes so long."""
_PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "safetensors")
LOG = logging.getLogger(__name__)


class Record(msgspec.Struct, frozen=True):
    """What is known of a model that was made here."""

    name: str
    recipe: str
    """Digest of the recipe."""
    files: dict[str, str]
    """sha256 of each file, by its path in the model's folder."""
    seconds: float
    """Processor time."""
    machine: str
    packages: dict[str, str]


class _Place:
    """A value `built:PACKAGE/NAME[/FILE]`, its recipe and its place on this machine."""

    def __init__(self, value: str) -> None:
        self.value = value
        self.package, _, named = value.removeprefix(PREFIX).partition("/")
        self.name, _, self._inner = named.partition("/")
        try:
            recipes: Mapping[str, Recipe] = import_module(self.package).RECIPES
        except (ImportError, AttributeError, ValueError) as error:
            raise DataError(f"{value!r} names no package with recipes: {error}.", code="registry.entry") from None
        if self.name not in recipes:
            raise UnknownNameError(f"recipe of {self.package}", self.name, recipes)
        self.recipe = recipes[self.name]
        self.home = cache_folder() / "built" / f"{self.name}-{self.recipe.digest[:12]}"

    @property
    def folder(self) -> Path:
        """Return the model's folder. Its last part is the model's name, which belongs to its identity."""
        return self.home / self.name

    @property
    def path(self) -> str:
        """Return the path that the value stands for."""
        return str(self.folder / self._inner if self._inner else self.folder)


def is_built(value: Any) -> bool:
    """Return whether a setting names a model that is made on this machine."""
    return isinstance(value, str) and value.startswith(PREFIX)


def settings_placed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the places of models that are made here, whether or not they are there yet.

    Raises:
        DataError: a value names no package with recipes.
        UnknownNameError: the package has no such recipe.
    """
    return {name: _Place(value).path if is_built(value) else value for name, value in settings.items()}


def ensure_built(settings: Mapping[str, Any]) -> None:
    """Make the models that settings name, where they are not there yet, and check those that are.

    Raises:
        DataError: a value names no package with recipes.
        ModelLoadError: the files of a model changed since it was made.
        UnknownNameError: the package has no such recipe.
        UsageError: the cache folder cannot be written.
    """
    for value in filter(is_built, settings.values()):
        place = _Place(value)
        if not place.home.is_dir():
            _build(place)
        _check(place)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of what can be made again.

    Raises:
        UsageError: the environment names none.
    """
    return user_folder("what can be made again", CACHE, ("XDG_CACHE_HOME", "LOCALAPPDATA"), ".cache", environment)


def _build(place: _Place) -> None:
    seconds = place.recipe.seconds
    LOG.warning("Making the model %s: once, about %d s of one processor, into %s", place.name, seconds, place.home)
    make = load_target(place.recipe.target, place.package)
    beside, started = place.home, time.process_time()
    try:
        place.home.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(place.home.parent)
        beside = Path(tempfile.mkdtemp(prefix=f".{place.home.name}.", dir=place.home.parent))
        (beside / place.name).mkdir()
        make(place.name, beside / place.name)
        record = Record(
            name=place.name,
            recipe=place.recipe.digest,
            files=_digests(beside / place.name),
            seconds=round(time.process_time() - started, 1),
            machine=f"{platform.machine()} {platform.processor()}".strip(),
            packages={name: number for name in _PACKAGES if (number := _version(name))},
        )
        (beside / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        if not place.home.is_dir():  # or another process was faster, and its model is as good
            beside.rename(place.home)
    except OSError as error:
        if not place.home.is_dir():
            raise UsageError(
                f"cannot write the model {place.name!r} into {str(place.home)!r}: {error.strerror or error}. "
                f"Set {CACHE} to a folder that can be written.",
                code="file.unwritable",
            ) from None
    finally:
        if beside != place.home:
            shutil.rmtree(beside, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    for left in folder.glob(".*-*"):
        if left.is_dir() and time.time() - left.stat().st_mtime > ABANDONED:
            shutil.rmtree(left, ignore_errors=True)


def _check(place: _Place) -> None:
    try:
        record = msgspec.json.decode((place.home / RECORD).read_bytes(), type=Record)
        changed = sorted(dict(set(record.files.items()) ^ set(_digests(place.folder).items())))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        changed = [f"{RECORD} ({error})"]
    if changed:
        raise ModelLoadError(
            f"the model {place.name!r} changed since it was made: {', '.join(changed)}. "
            f"Remove {str(place.home)!r}, and it is made anew.",
            code="model.built-changed",
            model=place.name,
        )


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
