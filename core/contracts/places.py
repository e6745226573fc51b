"""Places on the author's machine: found in what a run records, and written by their last name where it is handed on."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

_PLACE = re.compile(r"(?:file://)?(?:~[\w.-]*|[A-Za-z]:)?[\\/][^\n]+|~[\\/][^\n]+")
_PREFIX = re.compile(r"[A-Za-z][\w.+-]{1,40}:(?=[\\/~]|[A-Za-z]:[\\/])(?!//)")
"""The adapter of a model that is named `ADAPTER:PLACE`."""
KEPT = frozenset({"identities"})
"""Fields that determine keys, and name no place (see `Identity`)."""


def place_in(text: str) -> str | None:
    """Return the absolute path that a value is, after the name of an adapter perhaps; None if it is none."""
    if (prefix := _PREFIX.match(text)) is not None:
        text = text[prefix.end() :]
    if "\n" in text or not _PLACE.fullmatch(text):
        return None
    # A value such as `/think` is a word of a prompt; a path of one part is one only if it is there.
    return text if len(_parts(text)) > 1 or _exists(text) else None


class Places:
    """The places in a record, each with the name that it is handed on by."""

    def __init__(self, found: Iterable[str]) -> None:
        self._names: dict[str, str] = {}
        for place in sorted(set(found)):
            name, number = _last(place), 1
            while name in self._names.values():
                number += 1
                name = f"{PurePosixPath(_last(place)).stem}-{number}{PurePosixPath(_last(place)).suffix}"
            self._names[place] = name
        written = {form: name for place, name in self._names.items() for form in _forms(place)}
        self._written = {form: written[form] for form in sorted(written, key=len, reverse=True)}
        self._home = _home()

    @classmethod
    def of(cls, record: Any) -> Places:
        """Return the places that values and names in a JSON record are, also in words of its `command`."""
        return cls(_found(record))

    def text(self, text: str) -> str:
        """Return a text with the names of the places in it."""
        for form, name in self._written.items():
            text = text.replace(form, name)
        return self._home.sub("~", text) if self._home is not None else text

    def record(self, value: Any) -> Any:
        """Return a JSON record with the names of the places in it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): kept if name in KEPT else self.record(kept) for name, kept in value.items()}
        if isinstance(value, tuple):
            return tuple(self.record(one) for one in value)
        return [self.record(one) for one in value] if isinstance(value, list) else value


def handed_on(record: str) -> str:
    """Return a JSON record, such as a manifest, without places; one without any stays as it is."""
    value = json.loads(record)
    named = Places.of(value).record(value)
    return record if named == value else json.dumps(named, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _found(value: Any, name: str = "") -> Iterable[str]:
    if isinstance(value, str):
        words = _words(value) if name == "command" else [value]
        yield from (place for word in words if (place := place_in(word)) is not None)
    elif isinstance(value, Mapping):
        for key, kept in value.items():
            if key not in KEPT:
                yield from _found(key)
                yield from _found(kept, key)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _found(one)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return [part for word in words for part in (word, word.partition("=")[2], word.rpartition("=")[2])]


def _parts(place: str) -> list[str]:
    return [part for part in re.split(r"[\\/]+", place.removeprefix("file://")) if part and part[-1] != ":"]


def _last(place: str) -> str:
    return (PureWindowsPath(place) if "\\" in place else PurePosixPath(place)).name or "folder"


def _exists(place: str) -> bool:
    try:
        return Path(place).exists()
    except (OSError, ValueError):
        return False


def _forms(place: str) -> Iterable[str]:
    """Return how a place is written: as it is, within a shell's quotes, HTML and JSON."""
    quoted = shlex.quote(place)
    yield from {place, quoted[1:-1] if "'" in place else place, escape(place)}
    yield from {json.dumps(place)[1:-1], json.dumps(place, ensure_ascii=False)[1:-1]}


def _home() -> re.Pattern[str] | None:
    try:
        home = str(Path.home())
    except RuntimeError:
        return None
    return re.compile(re.escape(home) + r"""(?=[\\/"'\s:;,)]|$)""") if len(_parts(home)) else None
