"""Where output goes: into its own folder, whatever lies there already."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..catalogue.judging import links_in
from ..contracts.errors import UsageError
from ..contracts.inputs import file_bytes

if TYPE_CHECKING:
    from ..scoring.score import Scores

MULTIVERSE = "multiverse.json"
"""In the folder of a run: what its multiverse said of it."""


class Said(msgspec.Struct, frozen=True):
    """What another analysis says of a run."""

    head: str
    """Of the run; a run that went on has another."""
    sentence: str


def with_said(scores: Scores, folder: Path) -> Scores:
    """Return a run with what its multiverse said, if one was done and the run is the same."""
    try:
        said = msgspec.json.decode(file_bytes(folder_within(folder, scores.run.name) / MULTIVERSE), type=Said)
    except (OSError, UsageError, msgspec.MsgspecError, UnicodeError):
        return scores
    known = bool(said.head) and said.head == scores.manifest.head
    return msgspec.structs.replace(scores, beside=(said.sentence,)) if known else scores


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
