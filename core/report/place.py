"""Where output goes: into its own folder, whatever lies there already."""

from __future__ import annotations

import os
from pathlib import Path

from ..catalogue.trust import links_in
from ..contracts.errors import UsageError


def folder_within(folder: Path, name: str) -> Path:
    """Return the folder `name` of a folder, for writing.

    Raises:
        UsageError: it, or something in it, is a link that leads out of it: one in a copied folder could lead anywhere.
    """
    place, inside = folder / name, folder.resolve() / name
    for link, target in links_in(place).items():
        if not target.is_relative_to(inside):
            raise _is_link(link, "Remove it, or name another folder with --runs.")
    return place


def own_file(path: Path) -> Path:
    """Return the path of a file that nobody named, for writing.

    Raises:
        UsageError: it is a link.
    """
    if path.is_symlink():
        raise _is_link(path, "Remove it, or name another file with --out.")
    return path


def _is_link(path: Path, mend: str) -> UsageError:
    return UsageError(f"{str(path)!r} is a link to {os.readlink(path)!r}. {mend}", code="file.link")
