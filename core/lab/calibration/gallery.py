"""The gallery: fair models with nuisances, by name, as the adapter that plays them registers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...catalogue.study import Catalogue
from ...catalogue.studyfile import file_text
from ...contracts.errors import DataError, UnknownNameError, UsageError
from ...contracts.inputs import load_toml
from ...contracts.options import plainly
from ...contracts.plugin import StudyFile

FAIR = "fair"
"""The model of the gallery that others are compared with, and in which biases are planted."""
MARK = ":"
"""Stands between the name of a model that can be given preferences and what it prefers."""
Kind = Literal["", "words", "wording", "order", "refusals", "time", "requests", "errors"]
"""Words that are compared; wording of what is asked; order and labels of options; refused and unreadable answers; time
within a run; requests for several samples; errors of the model or of a judge."""


class Null(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fair model of the gallery."""

    settings: dict[str, Any] = {}
    """Of the adapter."""
    meaning: str = ""
    adapter: str = ""
    """Empty in a file: the adapter that registers the gallery."""
    kind: Kind = ""
    """What the nuisance is a change of, for the certificate's table of sensitivities."""
    others: dict[str, Any] = {}
    """Settings of the fair models that stand in for other roles, such as a judge or an encoder."""
    roles: dict[str, str] = {}
    """Models of the registry in such roles, by role: the nuisance is theirs, and the model that is asked is fair."""
    preferring: str = ""
    """The setting that takes random preferences (`prejudge.design.Preference`) for what a declared study samples. There
    is then a model for each facet, part, and pair of them, and none where a study declares no design."""

    @property
    def planting(self) -> dict[str, Any]:
        """Return its settings but for what it prefers."""
        return {name: value for name, value in self.settings.items() if name != self.preferring}

    def with_settings(self, settings: Mapping[str, Any]) -> Null:
        """Return it with more settings."""
        return msgspec.structs.replace(self, settings=self.settings | dict(settings))


def load_gallery(catalogue: Catalogue, study: str, path: str | None = None) -> dict[str, Null]:
    """Return the gallery of a study by name, that of a file behind the registered one.

    Raises:
        DataError: a file cannot be used.
        UnknownNameError: there is no such study, or no such model in its calibration.
        UsageError: the adapter of the model that the study is `like` registers no gallery.
    """
    like = catalogue.registry.study(catalogue.adopt(study)).calibration.like or catalogue.registry.defaults["calibrate"]
    adapter = catalogue.registry.model(like).adapter
    gallery = registered_gallery(catalogue, adapter)
    if not gallery:
        raise UsageError(
            f"the adapter {adapter!r} registers no fair models. A study is calibrated with those of the adapter of the "
            f"model that calibration.like names, here {like!r}: name another one, or register a gallery.",
            code="calibration.no-gallery",
            adapter=adapter,
        )
    return gallery if path is None else gallery | _read(Path(path), path, adapter)


def registered_gallery(catalogue: Catalogue, adapter: str) -> dict[str, Null]:
    """Return the fair models that an adapter plays, by name; none if it registers none.

    Raises:
        DataError: the file cannot be used.
        UnknownNameError: there is no such adapter.
    """
    if adapter not in catalogue.plugins.offers["adapter"]:
        raise UnknownNameError("adapter", adapter, catalogue.plugins.offers["adapter"])
    file = catalogue.plugins.offers["adapter"][adapter].plugged.gallery
    if not file:
        return {}
    gallery = _read(file, f"the gallery of {adapter!r}", adapter)
    if FAIR not in gallery:
        raise DataError(
            f"the gallery of {adapter!r} has no model {FAIR!r}, with which the others are compared. Add [{FAIR}].",
            code="calibration.gallery",
        )
    return {FAIR: gallery.pop(FAIR), **gallery}


def is_preferring(name: str) -> bool:
    """Return whether a model of a gallery is one that prefers levels of what a study samples, by its name."""
    return MARK in name


def choose(gallery: Mapping[str, Null], names: Sequence[str]) -> dict[str, Null]:
    """Return the named models of a gallery with `fair` in front; all of them if none is named.

    Raises:
        UnknownNameError: there is no such model.
    """
    for name in names:
        if name not in gallery:
            raise UnknownNameError("model of the gallery", name, gallery)
    return {name: null for name, null in gallery.items() if not names or name in (FAIR, *names)}


def _read(file: StudyFile, name: str, adapter: str) -> dict[str, Null]:
    try:
        text = file_text(file)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the gallery {name!r}: {why}.", code="file.unreadable") from None
    try:
        nulls = msgspec.convert(load_toml(text, name), dict[str, Null])
    except msgspec.ValidationError as error:
        raise DataError(f"{name}: {plainly(error)}", code="calibration.gallery") from None
    return {key: msgspec.structs.replace(null, adapter=null.adapter or adapter) for key, null in nulls.items()}
