"""The pages of one trial, of its twins side by side, and of an image."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ..contracts.errors import UnknownNameError
from ..report.marked import marked
from ..report.pictures import kind_of
from ..store import RunRow
from .answering import Pages, html, ready, run_of, view_of
from .columns import Column, sharing, twins_of
from .exchanges import Shown, opening, shown
from .room import Room
from .shelf import Index
from .urls import word_of

MOST_TWINS = 12
"""Trials side by side on a page."""


def trial(room: Room, request: Request) -> Response:
    """Show one trial in full."""
    run, view, row = run_of(room, request), view_of(request), request.path_params["row"]
    index = ready(room, run)
    one = _one(room, run, index, row)
    found = index.find(view.filters, view.words, view.where).rows
    place = int(np.searchsorted(found, row))
    inside = place < len(found) and found[place] == row
    ways = [(c.name, len(twins_of(index.columns, row, [c.name]))) for c in _varying(index)]
    shared = [(names, len(sharing(index.columns, row, names))) for names in room.declared(run, index)]
    return html(
        "trial.html",
        title=one.trial,
        run=run,
        one=one,
        view=view,
        place=place if inside else None,
        count=len(found),
        before=int(found[place - 1]) if inside and place else None,
        after=int(found[place + 1]) if inside and place + 1 < len(found) else None,
        ways=[(name, n) for name, n in ways if n > 1],
        shared=[(names, n) for names, n in shared if n > 1],
    )


def twins(room: Room, request: Request) -> Response:
    """Show the trials side by side that share all factors but the varied ones, or that share the given columns."""
    run, view, row = run_of(room, request), view_of(request), request.path_params["row"]
    index = ready(room, run)
    one = _one(room, run, index, row)
    varied, same = request.query_params.getlist("vary"), request.query_params.getlist("same")
    for name in (*varied, *same):
        if name not in index.columns:
            raise UnknownNameError("factor or outcome", name, index.columns)
    rows = sharing(index.columns, row, same) if same else twins_of(index.columns, row, varied)
    # The trial itself comes first, whatever its place.
    places = [row, *(int(other) for other in rows if other != row)][:MOST_TWINS]
    beside = shown(room.store, run, index, places)
    asked = marked([opening("\n\n".join(text for _, text in two.asked)) for two in beside])
    said = marked([two.opening for two in beside])
    names = [name for name in one.factors if len({repr(two.factors.get(name)) for two in beside}) > 1]
    return html(
        "twins.html",
        title=f"Twins of {one.trial}",
        run=run,
        view=view,
        one=one,
        beside=list(zip(beside, asked, said, strict=True)),
        count=len(rows),
        most=MOST_TWINS,
        varied=varied,
        same=same,
        differing=names,
        word_of=word_of,
    )


def _one(room: Room, run: RunRow, index: Index, row: int) -> Shown:
    if not 0 <= row < index.rows or not (found := shown(room.store, run, index, [row], whole=True)):
        raise UnknownNameError("row", str(row), [], f"The run has {index.rows:,} trials, numbered from 0.")
    return found[0]


def _varying(index: Index) -> list[Column]:
    return [c for c in index.columns.values() if c.role == "factor" and len(c.levels) != 1]


def text(room: Room, request: Request) -> Response:
    """Return one text of a trial, whole, as a file."""
    run, row, part = run_of(room, request), request.path_params["row"], request.path_params["part"]
    one = _one(room, run, ready(room, run), row)
    parts = [words for _, words in (*one.asked, *one.said)]
    if part >= len(parts):
        raise UnknownNameError("text", str(part), [])
    headers = {"Content-Disposition": f'attachment; filename="trial-{row + 1}-{part + 1}.txt"'}
    return Response(parts[part].encode("utf-8", "replace"), media_type="text/plain", headers=headers)


def image(room: Room, request: Request) -> Response:
    """Return an image of the store, by its bytes' own type; nothing that could hold a script."""
    data = room.store.blob(request.path_params["sha256"])
    kind = kind_of(data)
    if not kind:
        return PlainTextResponse("not a PNG, JPEG, GIF or WebP image\n", status_code=415)
    return Response(data, media_type=kind)


PAGES: Pages = {
    "/run/{run}/trial/{row:int}": (("GET",), trial),
    "/run/{run}/trial/{row:int}/text/{part:int}": (("GET",), text),
    "/run/{run}/twins/{row:int}": (("GET",), twins),
    "/image/{sha256}": (("GET",), image),
}
