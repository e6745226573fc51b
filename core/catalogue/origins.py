"""Where the code behind a number comes from: package, version and digest of each third-party probe, metric and adapter.

The code of this package is identified by its own version, which every manifest has.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, packages_distributions, version
from pathlib import Path

import msgspec

from ..contracts.errors import UsageError
from .plugins import BUILT_IN, Plugins
from .study import Catalogue, Study

_OWN = __package__.partition(".")[0]


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The package that a probe, metric or adapter is of."""

    module: str
    """Its package or module, as it is imported."""
    sha256: str
    """Digest of the files of that package, by their paths within it; compiled files of Python do not count."""
    distribution: str = ""
    """As pip names it; empty for a module that is only on the path."""
    version: str = ""

    def __str__(self) -> str:
        """Return package, version and the beginning of the digest."""
        name = f"{self.distribution} {self.version}".strip() or f"the module {self.module}"
        return f"{name} (sha256 {self.sha256[:12]})"


def origins(catalogue: Catalogue, study: Study, *, models: bool = True) -> dict[str, Origin]:
    """Return the origins of a study's third-party parts, by kind and name: `metric my-metric`.

    Args:
        catalogue: what is installed.
        study: the study of a run.
        models: also return those of the models' adapters, which are imported for it.
    """
    parts = [("probe", study.probe), *(("metric", name) for name in study.metrics)]
    if models:
        adapters = {catalogue.registry.model(model).adapter for model in study.roles.values()}
        parts += [("adapter", name) for name in sorted(adapters)]
    located = ((f"{kind} {name}", origin_of(catalogue.plugins, kind, name)) for kind, name in parts)
    return {part: origin for part, origin in located if origin is not None}


def origin_of(plugins: Plugins, kind: str, name: str) -> Origin | None:
    """Return the origin of a probe, metric or adapter; None if it is of this package."""
    module = plugins.load(kind, name).__module__
    if module.partition(".")[0] == _OWN:
        return None
    label, colon, _ = plugins.offers[kind][name].plugin.partition(":")
    return _origin(module, label if colon and label != BUILT_IN else "")


def ensure_installed(plugins: Plugins, study: Study, made_with: Mapping[str, Origin]) -> None:
    """Refuse to score a run without the third-party parts that it was made with.

    Raises:
        UsageError: naming the package to install.
    """
    for kind, name in [("probe", study.probe), *(("metric", name) for name in study.metrics)]:
        if name not in plugins.offers[kind] and (origin := made_with.get(f"{kind} {name}")) is not None:
            pin = f"{origin.distribution}=={origin.version}" if origin.version else origin.distribution
            mend = (
                f"Run: pip install '{pin}'"
                if pin
                else "Register it in registry.toml, and name its folder in PYTHONPATH"
            )
            raise UsageError(
                f"the {kind} {name!r} of this run is of {origin}, which is not installed here. {mend}",
                code="plugin.missing",
                kind=kind,
                name=name,
                package=origin.distribution or origin.module,
            )


def changes(before: Mapping[str, Origin], now: Mapping[str, Origin]) -> list[str]:
    """Return in words what differs between two records of origins."""

    def told(origin: Origin | None) -> str:
        return "prejudge itself" if origin is None else str(origin)

    parts = [part for part in {**before, **now} if before.get(part) != now.get(part)]
    return [
        f"the {part} is of {told(before.get(part))} in one and of {told(now.get(part))} in the other" for part in parts
    ]


@cache
def _origin(module: str, distribution: str) -> Origin:
    # What a process has imported stays what it is: it is digested once.
    package, folders, files = _package(module)
    digest = digest_of(folders, files)
    distribution = distribution or _distribution(package.partition(".")[0], [*folders, *files])
    try:
        number = version(distribution) if distribution else ""
    except PackageNotFoundError:
        number = ""
    return Origin(package, digest, distribution, number)


def digest_of(folders: Iterable[Path], files: Iterable[Path] = ()) -> str:
    """Return the sha256 (hex) of files and of all in folders, by their paths within; compiled files do not count."""
    digest = hashlib.sha256()
    for name, path in sorted([*((path.name, path) for path in files), *_within(folders)]):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{name}\0{content}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _distribution(package: str, places: Iterable[Path]) -> str:
    """Return the distribution that a package is of, or nothing."""
    for distribution in distributions():
        if package in (distribution.read_text("top_level.txt") or "").split():
            return distribution.name
    # Not all name their packages; to look through the files of all takes a second.
    installed = [Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")]
    if not any(place.is_relative_to(folder) for place in places for folder in installed):
        return ""
    return next(iter(packages_distributions().get(package, ())), "")


def _package(module: str) -> tuple[str, list[Path], list[Path]]:
    """Return the outermost package of a module that is no mere namespace, with its folders, or its only file."""
    names = module.split(".")
    for name in (".".join(names[:length]) for length in range(1, len(names) + 1)):
        loaded = sys.modules.get(name)
        if (file := getattr(loaded, "__file__", None)) is not None:
            folders = [Path(folder) for folder in getattr(loaded, "__path__", ())]
            return name, folders, [] if folders else [Path(file)]
    return module, [], []  # made at run time, such as in a notebook: there is no file


def _within(folders: Iterable[Path]) -> Iterable[tuple[str, Path]]:
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(folder).as_posix(), path
