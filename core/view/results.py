"""The pages of a run's numbers and report."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..contracts.errors import UnknownNameError
from .answering import Pages, html, ready, run_of, view_of
from .numbers import numbers_of
from .room import Room
from .urls import group_view

REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)
"""A report is a file that anybody may have written: it runs as a site of its own, without this one's cookie."""


def numbers(room: Room, request: Request) -> Response:
    """Show every estimate with the way to the answers behind it; with filters, those of the groups that fit."""
    run, view = run_of(room, request), view_of(request)
    index = ready(room, run)
    rows, whence = numbers_of(room, run)
    listed = []
    for row in rows:
        own, others = group_view(row.group, index.columns)
        if all(own.filters.get(name, words) == words for name, words in view.filters.items() if name in row.group):
            listed.append((row, own, others))
    return html(
        "numbers.html", title=f"Numbers of {run.name}", run=run, view=view, rows=listed, whence=whence, every=len(rows)
    )


def report(room: Room, request: Request) -> Response:
    """Show the report of the run, as a site of its own."""
    run = run_of(room, request)
    path = room.report(run)
    if path is None:
        raise UnknownNameError("report", run.name, [], f"Write it: prejudge score {run.name}", code="view.no-report")
    return HTMLResponse(path.read_text("utf-8"), headers={"Content-Security-Policy": REPORT_POLICY})


PAGES: Pages = {
    "/run/{run}/numbers": (("GET",), numbers),
    "/run/{run}/report": (("GET",), report),
}
