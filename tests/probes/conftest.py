"""Fixtures for tests of probes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prejudge.core.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a new store."""
    with Store(tmp_path / "s.db") as opened:
        yield opened
