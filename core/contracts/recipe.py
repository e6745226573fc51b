"""Recipes: models that are made on this machine at their first use, by a program of an installed package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Recipe(NamedTuple):
    """How a model is made. A package offers its recipes as `RECIPES`, by the names of the models."""

    target: str
    """`module:function`, which takes the model's name and an empty folder to write its files into. It uses no network,
    prints nothing, and leaves the process as it was (number of threads, random state)."""
    seconds: int
    """Processor time that it takes on one core of a common machine, to tell the user."""
    digest: str
    """What the recipe depends on, such as `digest_of` its programs: another digest is another model."""


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of the names and contents of files."""
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(f"{path.name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()
