"""The gallery: fair models with nuisances, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...contracts.errors import DataError, UnknownNameError
from ...contracts.inputs import file_bytes, load_toml
from ...contracts.options import plainly

FAIR = "fair"
"""The model of the gallery that others are compared with, and in which biases are planted."""


Kind = Literal["", "words", "wording", "order", "refusals", "time", "requests", "errors"]
"""Words that are compared; wording of what is asked; order and labels of options; refused and unreadable answers; time
within a run; requests for several samples; errors of the model or of a judge."""


class Null(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fair model of the gallery."""

    settings: dict[str, Any] = {}
    """Of the adapter."""
    meaning: str = ""
    adapter: str = "simulated"
    kind: Kind = ""
    """What the nuisance is a change of, for the certificate's table of sensitivities."""
    others: dict[str, Any] = {}
    """Settings of the fair models that stand in for other roles, such as a judge or an encoder."""
    roles: dict[str, str] = {}
    """Models of the registry in such roles, by role: the nuisance is theirs, and the model that is asked is fair."""

    def with_settings(self, settings: Mapping[str, Any]) -> Null:
        """Return it with more settings."""
        return msgspec.structs.replace(self, settings=self.settings | dict(settings))


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
