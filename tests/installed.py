"""What is installed, without importing it: every process that runs tests collects all of them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def need(*packages: str, reason: str = "") -> None:
    """Skip this module where one of these packages is not installed."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        pytest.skip(reason or f"{', '.join(absent)} is not installed", allow_module_level=True)
