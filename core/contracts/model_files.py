"""`ModelFiles`: what a folder or file on this machine says of the model in it, read without weights or a backend."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from .errors import DataError
from .inputs import file_bytes, is_deep

MOST_NAMES = 10_000
"""Files of a folder that are looked at."""
MOST_JSON = 16 << 20
"""Bytes of the largest description that is read; those of real models have a few thousand."""


class Recognised(NamedTuple):
    """How an adapter reads a model's files."""

    model: str
    """The value of its setting `model`."""
    because: str
    """What the files say, such as `config.json names BertForMaskedLM`."""


class ModelFiles(msgspec.Struct, frozen=True, dict=True):
    """A folder that may hold a model, or a file that may be one."""

    path: str
    """As the user wrote it."""

    @cached_property
    def place(self) -> Path:
        """Return its path on this machine."""
        return Path(self.path).expanduser()

    @cached_property
    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.place.is_file()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the files in it, sorted; the only name of a file."""
        if self.is_file:
            return (self.place.name,)
        try:
            with os.scandir(self.place) as entries:
                return tuple(sorted(entry.name for entry in islice(entries, MOST_NAMES) if entry.is_file()))
        except OSError:
            return ()

    def json(self, name: str) -> Any:
        """Return the content of a JSON file in the folder; None if there is none.

        Raises:
            DataError: it cannot be read, is too large, or is not valid.
        """
        if self.is_file or name not in self.names:
            return None
        if name not in (known := self._read):
            known[name] = read_json(self.place / name)
        return known[name]

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return the content of a JSON file in the folder that has an object; empty if it has none.

        Raises:
            DataError: as `json`.
        """
        found = self.json(name)
        return found if isinstance(found, dict) else {}

    @cached_property
    def architectures(self) -> tuple[str, ...]:
        """Return the classes of Transformers that `config.json` names.

        Raises:
            DataError: as `json`.
        """
        named = self.settings("config.json").get("architectures")
        return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()

    @cached_property
    def _read(self) -> dict[str, Any]:
        return {}


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        DataError: it cannot be read, is too large, or is not valid.
    """
    try:
        found = json.loads(file_bytes(path, MOST_JSON).decode())
        if is_deep(found):
            raise ValueError("it is nested too deeply")
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or str(error)[:200]
        raise DataError(f"cannot read {str(path)!r}: {why}.", code="model.config") from None
    return found
