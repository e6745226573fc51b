"""requirements.lock is complete, agrees with constraints.txt and pyproject.toml, and every file has a hash."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .dependencies import named, needed
from .package_parts import ROOT

LOCK = (ROOT / "requirements.lock").read_text("utf-8")
NOT_LOCKED = {"torch"}
"""Its builds differ by device."""
UNPINNED = {"setuptools"}
"""Not in constraints.txt: every environment has it."""
ENTRY = re.compile(r"^(\S[^\n]*?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M)


def locked() -> dict[str, Requirement]:
    """Return the requirements by canonical name."""
    found = [Requirement(line) for line, _ in ENTRY.findall(LOCK)]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def version_of(requirement: Requirement) -> str:
    (exact,) = requirement.specifier
    assert exact.operator == "=="
    return exact.version


def test_every_line_is_a_pinned_version_with_hashes():
    assert ENTRY.sub("", LOCK).strip().startswith("#")
    rest = [line for line in ENTRY.sub("", LOCK).splitlines() if line.strip() and not line.startswith("#")]
    assert not rest and len(locked()) > 50
    assert all(version_of(requirement) for requirement in locked().values())


def test_versions_are_those_of_the_constraints():
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    pinned = {canonicalize_name(each.name): version_of(each) for each in map(Requirement, lines)}
    here = {name: each for name, each in locked().items() if each.marker is None or each.marker.evaluate()}
    assert {name: version_of(each) for name, each in here.items() if name not in UNPINNED} == {
        name: version for name, version in pinned.items() if name in here
    }


def test_requirements_of_all_extras_are_met():
    found = locked()
    for requirement in (*named("base"), *named("all")):
        if (name := canonicalize_name(requirement.name)) not in NOT_LOCKED:
            assert requirement.specifier.contains(version_of(found[name])), f"{requirement}: run `make lock`"


def test_nothing_that_they_need_is_missing():
    try:
        whole = needed([*named("base"), *named("all")])
    except PackageNotFoundError as error:
        pytest.skip(f"needs all extras; {error} is missing")
    assert set(whole) - set(locked()) == NOT_LOCKED, "run `make lock`"


def test_no_place_of_a_machine_is_in_it():
    assert not re.search(r"file:|https?:|--(?:index|extra|find)|@", LOCK)
