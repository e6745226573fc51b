"""Fixtures for tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .processes import Commands


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Return what starts commands as processes that need not import anything."""
    with Commands(tmp_path_factory.mktemp("said")) as commands:
        yield commands
