"""Packages that an extra or an adapter needs, and their versions, from metadata: nothing is imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from ..contracts.installing import PACKAGE
from .origins import origin_of
from .study import Catalogue

NOT_FOR_USERS = ("all", "dev", "docs")
"""Extras that combine others, or that only developers need."""


def adapter_packages(catalogue: Catalogue, models: Iterable[str]) -> dict[str, str]:
    """Return the versions of the packages that the adapters of models need, by name.

    Of an adapter of prejudge these are the packages of its extra; of another, its own package and what that requires.
    """
    names = dict.fromkeys(catalogue.registry.model(model).adapter for model in models)
    needed = (package for name in names for package in _needed(catalogue, name))
    return dict(sorted(versions(tuple(needed)).items()))


@cache
def versions(names: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    # What a process has imported stays what it is: the metadata need not be parsed for every run.
    numbers = {}
    for name in names:
        with suppress(PackageNotFoundError):
            numbers[name] = version(name)
    return numbers


def _needed(catalogue: Catalogue, adapter: str) -> Iterator[str]:
    extra = catalogue.plugins.offers["adapter"][adapter].plugged.extra
    origin = origin_of(catalogue.plugins, "adapter", adapter)
    if origin is None:
        yield from (requirement.name for requirement in requirements_of(PACKAGE).get(extra, ()))
    elif origin.distribution:
        yield origin.distribution
        yield from _required(origin.distribution, extra)


def _required(package: str, extra: str) -> Iterator[str]:
    for line in _requires(package):
        requirement = Requirement(line)
        applies = requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in {"", extra})
        if applies and requirement.name != PACKAGE:
            yield requirement.name


def _requires(package: str) -> list[str]:
    try:
        return requires(package) or []
    except PackageNotFoundError:  # a source tree that was not installed
        return []


def requirements_of(package: str) -> dict[str, list[Requirement]]:
    """Return the requirements of each extra of a package, with those of the extras that it includes."""
    direct: dict[str, list[Requirement]] = {}
    for line in _requires(package):
        requirement = Requirement(line)
        for extra in _extras_named(requirement):
            direct.setdefault(extra, []).append(requirement)
    return {extra: list(_flat(extra, direct, package)) for extra in direct if extra not in NOT_FOR_USERS}


def _extras_named(requirement: Requirement) -> list[str]:
    """Return the extra of a requirement; None for a requirement of the package itself."""
    marker = str(requirement.marker or "")
    _, equals, after = marker.replace("'", '"').partition('extra == "')
    return [after.partition('"')[0]] if equals else []


def _flat(extra: str, own: dict[str, list[Requirement]], package: str) -> Iterator[Requirement]:
    for requirement in own[extra]:
        if requirement.name == package:
            for inner in sorted(requirement.extras):
                yield from _flat(inner, own, package)
        else:
            yield requirement
