"""The pages of runs, of a run's trials, and of the levels of a factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from ..contracts.errors import UnknownNameError
from ..engine.manifest import manifest_of
from ..store import RunRow, list_runs
from .answering import Pages, html, ready, run_of, view_of
from .certified import certificates_of
from .columns import Rows
from .exchanges import Shown, shown
from .export import MOST_EXPORTED
from .room import Room
from .shelf import Index
from .urls import PREFIX, View, word_of

PAGE = 50
LISTED = 10
"""Levels of a facet that are listed before it is opened."""
MOST_LISTED = 500


def runs(room: Room, request: Request) -> Response:
    """Show the runs, the newest first."""
    found = [(run, manifest_of(run)) for run in reversed(list_runs(room.store))]
    pair = _latest([run for run, _ in found if run.is_result] or [run for run, _ in found])
    return html("runs.html", title="Runs", runs=found, pair=pair, store=str(room.store.url.database or ""))


def _latest(found: list[RunRow]) -> tuple[str, str]:
    """Return two runs to compare: the newest two of one study, if there are two; of runs from the newest on."""
    seen: dict[str, str] = {}
    for run in found:
        if run.study in seen:
            return run.name, seen[run.study]
        seen[run.study] = run.name
    names = [run.name for run in found]
    return (names[1], names[0]) if len(names) > 1 else ("", "")


def trials(room: Room, request: Request) -> Response:
    """Show the trials that fit, a page at a time."""
    run, view = run_of(room, request), view_of(request)
    index = ready(room, run)
    found = index.find(view.filters, view.words, view.where)
    place = int(np.searchsorted(found.rows, view.start))
    rows = [int(row) for row in found.rows[place : place + PAGE]]
    return html(
        "trials.html",
        title=run.name,
        **_listed(room, run, index, view, shown(room.store, run, index, rows), request),
        # What has few levels can be taken in at once, and comes first.
        facets=sorted(found.facets, key=lambda facet: len(facet.counts) > LISTED),
        count=len(found.rows),
        total=found.total,
        place=place,
        pages=pages_around(found.rows, place),
        export_most=MOST_EXPORTED,
    )


def _listed(room: Room, run: RunRow, index: Index, view: View, rows: list[Shown], request: Request) -> dict[str, Any]:
    several = [c for c in index.columns.values() if c.role in ("factor", "stage") and len(c.levels) != 1]
    several.sort(key=lambda column: len(column.levels) > LISTED)
    fixed = [(c.name, c.levels[0]) for c in index.columns.values() if c.role == "factor" and len(c.levels) == 1]
    return {
        "run": run,
        "manifest": manifest_of(run),
        "index": index,
        "view": view,
        "rows": rows,
        "columns": several,
        "fixed": fixed,
        "outcomes": [c for c in index.columns.values() if c.role == "outcome"],
        "word_of": word_of,
        "listed": LISTED,
        "prefix": PREFIX,
        "has_report": room.report(run) is not None,
        "certified": run.study in certificates_of(room),
    }


def pages_around(rows: Rows, place: int, size: int = PAGE) -> dict[str, int | None]:
    """Return the first row of the pages around a place; None where there is none."""
    count = len(rows)
    return {
        "first": int(rows[0]) if place > 0 and count else None,
        "previous": int(rows[max(place - size, 0)]) if place > 0 and count else None,
        "next": int(rows[place + size]) if place + size < count else None,
        "last": int(rows[(count - 1) // size * size]) if place + size < count else None,
    }


def levels(room: Room, request: Request) -> Response:
    """Show every level of a facet."""
    run, view, name = run_of(room, request), view_of(request), request.path_params["column"]
    index = ready(room, run)
    facets = {facet.column.name: facet for facet in index.find(view.filters, view.words, view.where).facets}
    if name not in facets:
        raise UnknownNameError("factor or outcome", name, facets)
    return html(
        "levels.html", title=name, run=run, view=view, facet=facets[name], most=MOST_LISTED, prefix=PREFIX, index=index
    )


PAGES: Pages = {
    "/": (("GET",), runs),
    "/run/{run}": (("GET",), trials),
    "/run/{run}/levels/{column:path}": (("GET",), levels),
}
