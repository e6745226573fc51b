"""Trust in a `registry.toml`: what one may do that nobody has named, and which ones a person has trusted.

A file that is named (`--registry FILE`, `Settings(registry=...)`) may do everything: run code, use keys, ask any
address. One that merely lies in the working directory, as in a copied folder, may add models of the adapters of this
package and studies under new names, read files of its own directory, and ask this machine's own addresses without a
key. Whatever it wants beyond that needs `prejudge trust`, which remembers the file's place and digest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..contracts.errors import DataError, PrejudgeError, UsageError
from ..contracts.files import replaced_whole, user_folder
from ..contracts.inputs import file_bytes
from .built import is_built
from .plugins import BUILT_IN, Plugins, is_built_in, load_target
from .registry import (
    FILE_NAME,
    SINGULAR,
    ModelEntry,
    Registry,
    StudyEntry,
    locate,
    parse_toml,
    read_registry,
    settled,
)

HOME = "PREJUDGE_CONFIG"
"""Environment variable that names the folder of the user's configuration."""
TRUSTED = "trusted.json"
"""File there: the digest of each trusted registry by its path."""
CODE = ("trust_remote_code", "allow_pickle")
"""Settings that let the files of a model run code."""
_KEY = re.compile(r"(?i)(?:^|_)(?:api_?key|key|secret|password|credentials?|auth(?:orization)?)(?:_|$)")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\\/]{2}")
_LOOPBACK = re.compile(
    r"https?://(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?(?:/[\w./-]*)?", re.ASCII
)
_OWN_RECIPE = re.compile(rf"built:{BUILT_IN}(?:\.\w+)*/[\w.-]+", re.ASCII)
_OWN_PACKAGE = re.compile(rf"package:{BUILT_IN}(?:\.\w+)*(?:/.*)?", re.ASCII)


class Candidate(NamedTuple):
    """A registry file as it was read once, so that what is shown is what is trusted and used."""

    path: Path
    sha256: str
    own: Registry
    """Its entries, with paths as they are written."""

    @property
    def settled(self) -> Registry:
        """Return its entries with absolute paths."""
        return settled(self.own, self.path.resolve().parent)


def load_registry(user: str | Path | None = None) -> Registry:
    """Return the built-in catalogue with the entries of the user's own: `user`, or that of the working directory.

    Raises:
        DataError: the file cannot be read.
        UnknownNameError: it has an unknown key.
        UsageError: it was not named, and wants more than it may (`registry.untrusted`).
    """
    built_in = built_in_registry()
    path = Path(user if user is not None else FILE_NAME)
    if user is None and not path.is_file():
        return built_in
    candidate = read_candidate(path)
    if user is None:
        ensure_trusted(candidate)
    own = candidate.settled
    return Registry(**{name: getattr(built_in, name) | getattr(own, name) for name in Registry.__struct_fields__})


def built_in_registry() -> Registry:
    """Return the catalogue of this package."""
    return settled(_built_in_entries(), None)


def _built_in_entries() -> Registry:
    where = f"the built-in {FILE_NAME}"
    return read_registry(parse_toml(files(BUILT_IN).joinpath(FILE_NAME).read_text("utf-8"), where), where)


def read_candidate(path: Path) -> Candidate:
    """Read a registry file.

    Raises:
        DataError: it cannot be read.
        UnknownNameError: it has an unknown key.
    """
    where = str(path.absolute())
    try:
        raw = file_bytes(path)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the registry {where!r}: {why}.", code="file.unreadable") from None
    return Candidate(path.absolute(), hashlib.sha256(raw).hexdigest(), read_registry(parse_toml(text, where), where))


def ensure_trusted(candidate: Candidate) -> None:
    """Refuse a registry that nobody has named or trusted, and that wants more than it may.

    Raises:
        UsageError: what it wants first, and the commands to look at it, trust it, or name it.
    """
    if is_trusted(candidate) or not (wants := wants_of(candidate)):
        return
    more = f", and {len(wants) - 1} more" if len(wants) > 1 else ""
    raise UsageError(
        f"the {FILE_NAME} of this folder is not trusted: {wants[0]}{more}. "
        f"To see all and trust it: prejudge trust. For one command: --registry {FILE_NAME}",
        code="registry.untrusted",
        path=str(candidate.path),
        wants=wants,
    )


def wants_of(candidate: Candidate) -> list[str]:
    """Return what a registry wants that needs trust, a line each; none if it may be read unasked."""
    # Who stands in a checkout of this package finds the built-in file itself.
    known = _built_in_entries()
    new = {
        table: {name: entry for name, entry in getattr(candidate.own, table).items() if of_ours.get(name) != entry}
        for table in SINGULAR
        for of_ours in [getattr(known, table)]
    }
    return list(_Wants(candidate.path, Registry(**new)).all()) if any(new.values()) else []


def ensure_hub_name(name: str, entry: ModelEntry) -> None:
    """Refuse a folder of the working directory that has the hub name of a built-in model, and would be read instead.

    Raises:
        UsageError: naming the folder.
    """
    model = entry.settings.get("model")
    if not isinstance(model, str) or Path(model).is_absolute() or not Path(model).exists():
        return
    if entry == built_in_registry().models.get(name):
        raise UsageError(
            f"the folder {model!r} here would be read in the place of the built-in model {name!r}. Rename it, or "
            f"name the folder itself: --model {entry.adapter}:./{model}",
            code="model.shadowed",
        )


class _Wants:
    def __init__(self, path: Path, own: Registry) -> None:
        self._own, self._path = own, path
        self._folder = self._path.parent.resolve()
        self._built_in = built_in_registry()
        self._plugins = Plugins(self._built_in)
        self._adapters = {
            name: str(offer.plugged.target)
            for name, offer in self._plugins.offers["adapter"].items()
            if is_built_in(offer.plugin) or offer.plugin == BUILT_IN
        }
        self._all = Registry(
            models=self._built_in.models | self._own.models,
            adapters=self._built_in.adapters | self._own.adapters,
        )

    def all(self) -> Iterator[str]:
        if self._path.resolve().parent != self._folder:
            yield f"{self._path.name} is a link to {str(self._path.resolve())!r}"
        known = {kind: set(self._plugins.offers[kind]) for kind in ("adapter", "probe", "metric")}
        known |= {"model": set(self._built_in.models), "study": set(self._plugins.studies)}
        for table, kind in SINGULAR.items():
            for name in getattr(self._own, table):
                if name in known[kind] or (kind == "model" and name.partition(":")[0] in known["adapter"]):
                    yield f"{kind} {name!r} takes the place of that of {BUILT_IN} or of an installed package"
        for table in ("adapters", "probes", "metrics"):
            for name, plugged in getattr(self._own, table).items():
                yield f"{SINGULAR[table]} {name!r} runs Python code: {plugged.target}"
        for name, model in self._own.models.items():
            yield from (f"model {name!r} {what}" for what in self._of_model(model))
        for name, study in self._own.studies.items():
            yield from (f"study {name!r} {what}" for what in self._of_study(study))

    def _of_model(self, model: ModelEntry) -> Iterator[str]:
        if model.adapter in self._adapters:
            yield from self._of_settings(model)
        elif model.adapter not in self._own.adapters:
            yield f"uses the adapter {model.adapter!r}, which is not one of {BUILT_IN}"
        yield from self._of_paths(model.settings)

    def _of_settings(self, model: ModelEntry) -> Iterator[str]:
        """Yield what the settings of an adapter of this package want; their defaults count too."""
        for name, value in model.settings.items():
            if name in CODE and value not in (False, None):
                yield f"lets the files of the model run code ({name})"
            if _KEY.search(name) and value not in ("", None):
                yield f"uses a key ({name} = {value!r})"
        for url in _texts({name: value for name, value in model.settings.items() if not name.endswith("url")}):
            if _URL.search(url):
                yield f"names the address {url!r}"
        for name in self._addresses(model.adapter):
            address = model.settings.get(name)
            if address is None:
                yield f"asks the default address of the adapter {model.adapter!r}, with your key if you have one"
            elif not (isinstance(address, str) and _LOOPBACK.fullmatch(address)):
                yield f"asks the address {address!r}"

    def _addresses(self, adapter: str) -> list[str]:
        """Return the settings of an adapter that hold an address."""
        options = load_target(self._adapters[adapter], BUILT_IN).options
        return [field.name for field in msgspec.structs.fields(options) if field.name.endswith("url")]

    def _of_study(self, study: StudyEntry) -> Iterator[str]:
        own = study.calibration
        yield from self._of_paths([study.options, *study.metrics.values(), own.options, own.settings])
        for role, name in (study.roles | own.roles).items():
            if name in self._own.models:
                continue  # judged as a model
            try:
                model = self._all.model(name)
            except PrejudgeError:
                continue  # the study cannot be run
            if model.adapter in self._adapters:
                yield from (f"asks {name!r} as {role}, which {what}" for what in self._of_settings(model))
            if name not in self._built_in.models:
                yield from self._of_paths(model.settings)

    def _of_paths(self, settings: Any) -> Iterator[str]:
        for value in _texts(settings):
            if is_built(value):
                if not _OWN_RECIPE.fullmatch(value):
                    yield f"runs a program of another package: {value!r}"
            elif value.startswith("package:"):
                if not self._is_of_package(value):
                    yield f"reads files of another package: {value!r}"
            elif not _URL.match(value) and self._leaves(value):
                yield f"reads files outside of its own directory: {value!r}"

    @staticmethod
    def _is_of_package(value: str) -> bool:
        if not _OWN_PACKAGE.fullmatch(value) or ".." in re.split(r"[\\/]", value):
            return False
        try:
            return Path(locate(value, None)).resolve().is_relative_to(Path(str(files(BUILT_IN))).resolve())
        except (DataError, ValueError, OSError):
            return True  # there is nothing to read

    def _leaves(self, value: str) -> bool:
        """Return whether a text, taken as a path, leads out of the directory; links in a folder count."""
        if not value:
            return False
        if value.startswith("~") or Path(value).anchor or ".." in re.split(r"[\\/]", value):
            return True
        try:
            place = (self._folder / value).resolve()
            return not place.is_relative_to(self._folder) or any(
                not target.is_relative_to(self._folder) for target in links_in(place).values()
            )
        except RuntimeError:
            return True  # a link to itself
        except (OSError, ValueError):
            return False  # no path at all, such as a long text


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in nested settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def links_in(folder: Path) -> dict[Path, Path]:
    """Return where each link in a folder, and below it, leads; of a folder that is a link, where that leads."""
    if folder.is_symlink():
        return {folder: Path(os.path.realpath(folder))}
    every = (Path(root, name) for root, folders, names in os.walk(folder) for name in (*folders, *names))
    return {path: Path(os.path.realpath(path)) for path in every if path.is_symlink()}


def is_trusted(candidate: Candidate) -> bool:
    """Return whether the user has trusted this file, with this content, at this place."""
    return trusted_files().get(_place(candidate.path)) == candidate.sha256


def trust(candidate: Candidate) -> None:
    """Remember that the user trusts a file.

    Raises:
        UsageError: the user's configuration cannot be written.
    """
    _write(trusted_files() | {_place(candidate.path): candidate.sha256})


def revoke(path: Path) -> bool:
    """Forget that the user trusts a file; return whether it was trusted.

    Raises:
        UsageError: the user's configuration cannot be written.
    """
    known = trusted_files()
    if known.pop(_place(path.absolute()), None) is None:
        return False
    _write(known)
    return True


def trusted_files() -> dict[str, str]:
    """Return the digest of each trusted file by its path; none if the configuration cannot be read."""
    try:
        return msgspec.json.decode((config_folder() / TRUSTED).read_bytes(), type=dict[str, str])
    except (OSError, UsageError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the user's configuration.

    Raises:
        UsageError: the environment names none.
    """
    return user_folder("your configuration", HOME, ("XDG_CONFIG_HOME", "APPDATA"), ".config", environment)


def _write(known: dict[str, str]) -> None:
    folder = config_folder()
    with replaced_whole(folder / TRUSTED) as beside:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(known, order="sorted")))


def _place(path: Path) -> str:
    return str(path.parent.resolve() / path.name)
