"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of published data beside the checkout, or skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PREJUDGE_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"published data is not at {folder} (set PREJUDGE_SHARED_DATA)")
    return folder
