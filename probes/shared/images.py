"""A user's folder of images: its table, and the files that it names."""

from __future__ import annotations

import re
from pathlib import Path

METADATA = "metadata.csv"
"""Name of the table of a folder of images."""


def inside(folder: Path, name: str) -> Path:
    """Return the file that a table in a folder names.

    Raises:
        ValueError: the name is not one below the folder. A table that came with a folder names no other files of yours.
    """
    named = name.strip()
    if Path(named).anchor or ".." in re.split(r"[\\/]", named):
        raise ValueError("it is not below the folder of the table; put the image there")
    return folder / named
