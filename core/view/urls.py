"""What is shown, as the query of a url, and back: a kept url shows the same to whoever has the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

PREFIX = "f."
"""Before the name of a column, so that a factor may have any name."""
WHERE = {"said": "answers", "asked": "requests", "both": "both"}


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Which trials of a run are shown, and from where on."""

    filters: dict[str, tuple[str, ...]] = {}
    words: str = ""
    where: str = "said"
    start: int = 0
    """The first trial of the page is the first that fits from this row on."""

    @property
    def query(self) -> str:
        """Return the query, `?` included; empty if everything is shown from the start."""
        parts = [(f"{PREFIX}{name}", word) for name, words in self.filters.items() for word in words]
        parts += [("q", self.words)] if self.words else []
        parts += [("in", self.where)] if self.words and self.where != "said" else []
        parts += [("from", str(self.start))] if self.start else []
        return f"?{urlencode(parts)}" if parts else ""

    def toggled(self, name: str, word: str) -> View:
        """Return the view with a level chosen, or no longer chosen."""
        words = self.filters.get(name, ())
        now = tuple(one for one in words if one != word) if word in words else (*words, word)
        filters = {k: v for k, v in (self.filters | {name: now}).items() if v}
        return msgspec.structs.replace(self, filters=filters, start=0)

    def without(self, name: str) -> View:
        """Return the view without a column's filter."""
        return msgspec.structs.replace(self, filters={k: v for k, v in self.filters.items() if k != name}, start=0)

    def at(self, start: int) -> View:
        """Return the view from another row on."""
        return msgspec.structs.replace(self, start=start)

    def silent(self) -> View:
        """Return the view without its search."""
        return msgspec.structs.replace(self, words="", where="said", start=0)


def read_view(items: Iterable[tuple[str, str]]) -> View:
    """Return the view of a query; what is no part of one is ignored."""
    filters: dict[str, tuple[str, ...]] = {}
    one: dict[str, str] = {}
    for name, value in items:
        if name.startswith(PREFIX):
            words = filters.get(name[len(PREFIX) :], ())
            filters[name[len(PREFIX) :]] = words if value in words else (*words, value)
        else:
            one[name] = value
    where = one.get("in", "said")
    return View(
        filters=filters,
        words=one.get("q", "").strip(),
        where=where if where in WHERE else "said",
        start=number(one.get("from", "")),
    )


def number(text: str, least: int = 0) -> int:
    """Return a whole number of a url, at least `least`; `least` for anything else."""
    return max(int(text), least) if text.isascii() and text.isdigit() and len(text) < 19 else least


def run_url(name: str, *parts: Any, query: str = "") -> str:
    """Return the path of a page of a run."""
    return "/".join(["/run", quote(name, safe=""), *(quote(str(part), safe="") for part in parts)]) + query


def group_view(group: Mapping[str, Any], columns: Iterable[str]) -> tuple[View, tuple[str, ...]]:
    """Return the view of an estimate's group, and the names of the group that are no columns, such as a threshold."""
    known = set(columns)
    filters: dict[str, tuple[str, ...]] = {
        name: (word_of(value),) for name, value in group.items() if name in known and value is not None
    }
    return View(filters=filters), tuple(name for name in group if name not in known)


def word_of(value: Any) -> str:
    """Return a value as the index writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value)
