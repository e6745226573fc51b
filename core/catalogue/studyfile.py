"""Study files: a study as a TOML file of its own, which a researcher can write, share and cite.

It has the fields of a study in `registry.toml`, and besides a `name` (by default the file's own) and a `seed`, which
goes to the probe and to every metric that has an option of that name. A path that begins with `./` or `../` is
relative to the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..contracts.errors import DataError
from .registry import StudyEntry, locate, parse_toml, read_registry

ENDING = ".toml"
OWN = ("name", "seed")
"""Keys of a study file that a study of the registry does not have."""


def is_study_file(name: str) -> bool:
    """Return whether this names a file, not a study of the registry."""
    return name.endswith(ENDING)


def load_study_file(path: str) -> tuple[str, int | None, dict[str, Any]]:
    """Return the study's name, its seed, and the rest, with paths made absolute; nothing is checked yet.

    Raises:
        DataError: the file cannot be read, is no TOML, or its name or seed is none.
    """
    place = Path(path)
    try:
        data = parse_toml(place.read_text("utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the study file {path!r}: {error}.", code="file.unreadable") from None
    name, seed = data.pop("name", place.stem), data.pop("seed", None)
    if not isinstance(name, str) or not name or "/" in name:
        raise DataError(
            f"{path}: name is {name!r}. Give a short text without slashes, such as {place.stem!r}.",
            code="studyfile.value",
        )
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise DataError(f"{path}: seed is {seed!r}. Give a whole number, 0 or more.", code="studyfile.value")
    if isinstance(data.get("options"), dict):
        folder = place.resolve().parent
        data["options"] = {key: locate(value, folder) for key, value in data["options"].items()}
    return name, seed, data


def read_study_file(path: str) -> tuple[str, int | None, StudyEntry]:
    """Return the study's name, its seed, and the study.

    Raises:
        DataError: the file cannot be read, or a value has the wrong type.
        UnknownNameError: a key that no study has.
    """
    name, seed, data = load_study_file(path)
    return name, seed, read_registry({"studies": {name: data}}, path).studies[name]
