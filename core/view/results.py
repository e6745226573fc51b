"""The pages of a run's numbers and of its report, each with the way to the other and to the answers."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..contracts.errors import UnknownNameError
from ..contracts.estimates import Measure
from ..scoring.unproved import unproved_words
from ..store import RunRow
from .answering import Pages, html, ready, run_of, view_of
from .numbers import Row, numbers_of
from .pairs import twins_of_run
from .room import Room
from .urls import View, group_view, run_url

REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "frame-ancestors 'self'"
)
"""A report is a file that anybody may have written: it runs as a site of its own, without this one's cookie."""
Listed = tuple[Row, View, tuple[str, ...]]
"""An estimate, the view of its answers, and the names of its group that are no columns."""
_SECTION = re.compile(r'<details class="metric" id="([\w-]+)" data-group="([^"]*)"')
_ANCHOR = re.compile(r"[\w-]{1,80}")


def numbers(room: Room, request: Request) -> Response:
    """Show every estimate by measure with the way to the answers behind it; with filters, those that fit."""
    run, view = run_of(room, request), view_of(request)
    index = ready(room, run)
    rows, whence = numbers_of(room, run)
    listed: dict[str, list[Listed]] = {}
    for row in rows:
        own, others = group_view(row.group, index.columns)
        if all(own.filters.get(name, words) == words for name, words in view.filters.items() if name in row.group):
            listed.setdefault(row.metric, []).append((row, own, others))
    words, report = room.words(run), room.report(run)
    places = _sections(report)
    parts: list[dict[str, Any]] = []
    for number, (metric, some) in enumerate(listed.items(), 1):
        told = words.get(metric) or Measure(metric.replace("_", " ").capitalize())
        if index.described.unproved:
            told = msgspec.structs.replace(told, label=unproved_words(told.label))
        part = {"metric": metric, "words": told, "rows": some, "place": places.get(metric, "")}
        parts.append(part | {"anchor": f"measure-{number}", "unit": some[0][0].unit})
    return html(
        "numbers.html",
        title=f"Numbers of {run.name}",
        run=run,
        view=view,
        shown=sum(map(len, listed.values())),
        parts=parts,
        whence=whence,
        every=len(rows),
        has_report=report is not None,
    )


def _sections(report: Path | None) -> dict[str, str]:
    """Return where in the report each measure is."""
    if report is None:
        return {}
    return {unescape(name): anchor for anchor, name in _SECTION.findall(report.read_text("utf-8", "replace"))}


def report(room: Room, request: Request) -> Response:
    """Show the report of the run in a frame; the script leads from its numbers to their answers."""
    run = run_of(room, request)
    _report(room, run)
    at = request.query_params.get("at", "")
    return html("report.html", title=f"Report of {run.name}", run=run, at=at if _ANCHOR.fullmatch(at) else "")


def framed(room: Room, request: Request) -> Response:
    """Return the report itself, as a site of its own."""
    text = _report(room, run_of(room, request)).read_text("utf-8")
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def _report(room: Room, run: RunRow) -> Path:
    path = room.report(run)
    if path is None:
        raise UnknownNameError("report", run.name, [], f"Write it: prejudge score {run.name}", code="view.no-report")
    return path


def answers(room: Room, request: Request) -> Response:
    """Lead from a number to the twins behind it that disagree, else to its answers.

    What is no column, such as a threshold, is no filter.
    """
    run, filters = run_of(room, request), view_of(request).filters
    index = ready(room, run)
    others = filters.keys() - index.columns.keys()
    if others:
        others &= {name for row in numbers_of(room, run)[0] for name in row.group}
    view = View(filters={name: words for name, words in filters.items() if name not in others})
    twins = twins_of_run(room, run, index)
    disagree = twins is not None and twins.of(index, view).height > 0
    return RedirectResponse(run_url(run.name, *(["twins"] if disagree else []), query=view.query), status_code=303)


PAGES: Pages = {
    "/run/{run}/numbers": (("GET",), numbers),
    "/run/{run}/report": (("GET",), report),
    "/run/{run}/report/page": (("GET",), framed),
    "/run/{run}/answers": (("GET",), answers),
}
