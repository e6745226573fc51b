"""Templates of the pages: every value is escaped, and characters that reorder text are shown by number."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from ..annotation.levels import EMPTY, NOTHING
from ..report.render import environment_of
from ..report.text import label
from .urls import WHERE, run_url

MOST_CHARACTERS = 1_000_000
"""Maximum length of a text on a page; the store has the full text."""


BEGIN = 20_000
"""Characters of a text that are shown at once: a browser takes seconds to break a word of a million into lines."""
PIECE = 5_000
FOLDED = 100
"""Levels of a facet from which on it is folded until it is opened."""
ROOMS = {"/": "Runs", "/samples": "Samples to label", "/certificates": "Certificates"}
SERVED: ContextVar[frozenset[str]] = ContextVar("SERVED", default=frozenset())
"""Paths of the application that answers: a page leads only to what is there, which without a store is little."""

ALTERED: ContextVar[str] = ContextVar("ALTERED", default="")
"""What is damaged of the run that a page shows, where the store is opened as `unproved`: every such page says so."""


def page(name: str, values: Mapping[str, Any]) -> str:
    """Return a page."""
    return _environment().get_template(name).render(**values)


@cache
def style() -> str:
    """Return the style: that of the report, and what these pages have besides."""
    return f"{_read('core.report', 'report.css')}\n{_resource('view.css')}"


@cache
def script() -> str:
    """Return the script."""
    return _resource("view.js")


@cache
def _environment() -> jinja2.Environment:
    environment = environment_of(_resource, MOST_CHARACTERS)
    environment.filters.update(level=level, moment=moment, group_value=label)
    environment.globals.update(
        altered=ALTERED.get, run_url=run_url, rooms=rooms, WHERE=WHERE, BEGIN=BEGIN, PIECE=PIECE, FOLDED=FOLDED
    )
    return environment


def rooms() -> list[tuple[str, str]]:
    """Return path and name of the first pages that are there; without a store `/` lists the samples."""
    served = SERVED.get()
    alone = "/run/{run}" not in served
    return [(path, name) for path, name in ROOMS.items() if path in served and not (alone and path == "/")]


def level(word: str | None) -> str:
    """Return a level for people."""
    return {NOTHING: "none", EMPTY: "empty text", None: ""}.get(word, word or "")


def moment(seconds: float | None) -> str:
    """Return a time of the store."""
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _resource(name: str) -> str:
    return _read("core.view", name)


def _read(package: str, name: str) -> str:
    return resources.files(f"{__package__.removesuffix('core.view')}{package}").joinpath(name).read_text("utf-8")
