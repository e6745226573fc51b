"""Study files: a study as a TOML file, which a researcher can write, share and cite, and a plugin can contain.

It has the fields of a study in `registry.toml`, and a `name` (default: the name of the file). A path that begins with
`./` or `../` is relative to the file.
"""

from __future__ import annotations

import re
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..contracts.errors import DataError
from ..contracts.inputs import file_bytes
from ..contracts.plugin import StudyFile
from ..contracts.probe import ReadsFolders
from .registry import StudyEntry, locate, parse_toml, read_registry

ENDING = ".toml"
FOLDER_FILE = "study.toml"
"""The file of a folder that is a study."""


def is_study_file(name: str) -> bool:
    """Return whether this is the name of a file, not of a registered study."""
    return name.endswith(ENDING)


def is_study_folder(name: str) -> bool:
    """Return whether this is the path of a folder that is a study."""
    try:
        return bool(name) and (Path(name) / FOLDER_FILE).exists()
    except (OSError, ValueError):
        return False


def read_study_folder(path: str, probe: ReadsFolders) -> tuple[str, StudyEntry]:
    """Return the name of the study of a folder, which is that of the folder, and the study.

    Raises:
        DataError: the folder cannot be used; with every error.
    """
    name = Path(path).resolve().name
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise DataError(
            f"the folder {name!r} names its study. Rename it: letters, digits, `-`, `_` and `.`.",
            code="studyfile.value",
        )
    return name, read_registry({"studies": {name: dict(probe.read_folder(path))}}, path).studies[name]


def study_at(path: str, probe: ReadsFolders) -> tuple[str, StudyEntry]:
    """Return the name and the study of a study file, or of a folder, which a probe reads; raises `DataError`."""
    return read_study_file(path) if is_study_file(path) else read_study_folder(path, probe)


def load_study_file(place: StudyFile) -> tuple[str, dict[str, Any]]:
    """Return the study's name, and its other fields with absolute paths; only name and seed are checked.

    Raises:
        DataError: the file cannot be read, is not valid TOML, or its name or seed is invalid.
    """
    path = str(place)
    file = _located(place)
    try:
        data = parse_toml(file_text(place), path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the study file {path!r}: {why}.", code="file.unreadable") from None
    stem = Path(file.name).stem
    name, seed = data.pop("name", stem), data.get("seed")
    if not isinstance(name, str) or not name or "/" in name:
        raise DataError(
            f"{path}: name is {name!r}. Give a short text without slashes, such as {stem!r}.", code="studyfile.value"
        )
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise DataError(f"{path}: seed is {seed!r}. Give a whole number, 0 or more.", code="studyfile.value")
    if isinstance(data.get("options"), dict):
        folder = Path(str(file)).resolve().parent
        data["options"] = {key: locate(value, folder) for key, value in data["options"].items()}
    return name, data


def file_text(place: StudyFile) -> str:
    """Return the text of a file.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is no text in UTF-8.
    """
    file = _located(place)
    return (file_bytes(file) if isinstance(file, Path) else file.read_bytes()).decode()


def _located(place: StudyFile) -> Path | Traversable:
    return Path(locate(place, None)) if isinstance(place, str) else place


def read_study_file(place: StudyFile) -> tuple[str, StudyEntry]:
    """Return the study's name, and the study.

    Raises:
        DataError: the file cannot be read, or a value has the wrong type.
        UnknownNameError: an unknown key.
    """
    name, data = load_study_file(place)
    return name, read_registry({"studies": {name: data}}, str(place)).studies[name]
