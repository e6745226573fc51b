"""What the package depends on, by extra, as far as this environment has it installed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .package_parts import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OWN = PROJECT["name"]
BASE = "base"
"""What an installation without extras needs."""


def named(extra: str) -> list[Requirement]:
    """Return the requirements of an extra as pyproject.toml writes them, with those of the extras that it names."""
    lines = PROJECT["dependencies"] if extra == BASE else PROJECT["optional-dependencies"][extra]
    found: list[Requirement] = []
    for requirement in map(Requirement, lines):
        if requirement.name == OWN:
            for other in sorted(requirement.extras):
                found += named(other)
        else:
            found.append(requirement)
    return found


def needed(requirements: Iterable[Requirement]) -> dict[str, metadata.Distribution]:
    """Return what some requirements install on this machine, by canonical name, with all that these need in turn.

    Raises:
        PackageNotFoundError: one is not installed.
    """
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, extra) for requirement in requirements for extra in ("", *requirement.extras)]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        found[name] = metadata.distribution(requirement.name)
        for line in found[name].requires or ():
            further = Requirement(line)
            if further.marker is None or further.marker.evaluate({"extra": extra}):
                waiting += [(further, each) for each in ("", *further.extras)]
    return found
