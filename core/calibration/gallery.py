"""The gallery: fair models with nuisances, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ..contracts.errors import DataError, UnknownNameError
from ..contracts.inputs import file_bytes, load_toml
from ..contracts.options import plainly

FAIR = "fair"
"""The model of the gallery that others are compared with, and in which biases are planted."""


class Null(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fair model of the gallery."""

    settings: dict[str, Any] = {}
    """Of the adapter."""
    meaning: str = ""
    adapter: str = "simulated"


def load_gallery(path: str | None = None) -> dict[str, Null]:
    """Return the gallery by name, that of a file behind the built-in one.

    Raises:
        DataError: the file cannot be used.
    """
    own = files(__package__).joinpath("gallery.toml").read_text(encoding="utf-8")
    gallery = _read(own, "gallery.toml")
    return gallery if path is None else gallery | _read(_text(path), path)


def choose(gallery: Mapping[str, Null], names: Sequence[str]) -> dict[str, Null]:
    """Return the named models of a gallery with `fair` in front; all of them if none is named.

    Raises:
        UnknownNameError: there is no such model.
    """
    for name in names:
        if name not in gallery:
            raise UnknownNameError("model of the gallery", name, gallery)
    return {name: null for name, null in gallery.items() if not names or name in (FAIR, *names)}


def _text(path: str) -> str:
    try:
        return file_bytes(Path(path)).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the gallery {path!r}: {why}.", code="file.unreadable") from None


def _read(text: str, where: str) -> dict[str, Null]:
    try:
        return msgspec.convert(load_toml(text, where), dict[str, Null])
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {plainly(error)}", code="calibration.gallery") from None
