"""What all pages share: how a page is returned, an error told, and an index that is still made waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..contracts.errors import PrejudgeError
from ..store import RunRow, get_run
from .build import Built
from .pages import ALTERED, page
from .room import Room
from .shelf import Index
from .urls import View, read_view

Handler = Callable[[Any, Request], Response]
"""Takes the room, which is None where there is no store."""
Pages = dict[str, tuple[tuple[str, ...], Handler]]
"""Methods and handler by path."""


class Waiting(Exception):
    """An index that a page needs is being made."""

    def __init__(self, run: RunRow, built: Built) -> None:
        super().__init__(run.name)
        self.run, self.built = run, built


def html(name: str, /, **values: Any) -> Response:
    """Return a page."""
    return HTMLResponse(page(name, values))


def problem(error: Exception, status: int) -> Response:
    """Return the page of an error."""
    code = error.code if isinstance(error, PrejudgeError) else ""
    text = str(error) if code else f"{type(error).__name__}: {error}"
    return HTMLResponse(page("problem.html", {"text": text, "code": code, "title": "Not shown"}), status_code=status)


def waiting(run: RunRow, built: Built) -> Response:
    """Return the page of an index that is made: it loads itself anew."""
    response = html("building.html", title=f"Reading {run.name}", run=run, built=built)
    response.headers["Refresh"] = "1"
    return response


def ready(room: Room, run: RunRow) -> Index:
    """Return the index of a run; while it is made, every page of the run is one that says how far it is."""
    found = room.shelf.index(run)
    if isinstance(found, Built):
        raise Waiting(run, found)
    ALTERED.set(found.described.unproved)
    return found


def run_of(room: Room, request: Request) -> RunRow:
    """Return the run that the path names."""
    return get_run(room.store, request.path_params["run"])


def view_of(request: Request) -> View:
    """Return what the query asks for."""
    return read_view(request.query_params.multi_items())
