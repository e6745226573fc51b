"""The door: complete, sorted, light."""

from __future__ import annotations

import subprocess
import sys

import prejudge


def test_all_names_are_there_and_sorted():
    assert prejudge.__all__ == sorted(prejudge.__all__)
    for name in prejudge.__all__:
        assert getattr(prejudge, name) is not None


def test_all_is_what_the_homes_give():
    assert set(prejudge.__all__) == set(prejudge._HOME) | {"__version__"}


def test_import_is_light():
    code = "import prejudge, sys; print(sorted({'polars', 'sqlmodel', 'scipy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
