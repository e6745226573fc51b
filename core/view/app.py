"""The application: pages of a store's runs, their trials, twins, numbers and comparisons."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from ..contracts.errors import PrejudgeError, UnknownNameError
from ..engine.manifest import manifest_of
from ..report.pictures import kind_of
from ..store import RunRow, get_run, list_runs
from .build import Built
from .columns import Column, Rows, sharing, twins_of
from .exchanges import Shown, shown
from .export import MOST_EXPORTED, exported
from .marked import marked
from .numbers import numbers_of
from .pages import page, script, style
from .paired import Pairing, pair
from .room import Room
from .shelf import Index
from .urls import PREFIX, View, group_view, read_view, word_of

PAGE = 50
MOST_TWINS = 12
"""Trials side by side on a page."""
LISTED = 10
"""Levels of a facet that are listed before it is opened."""
MOST_LISTED = 500
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)
"""A report is a file that anybody may have written: it runs as a site of its own, without this one's cookie."""

Handler = Callable[[Any, Request], Response]
"""Takes the room, which is None where there is no store."""


def application(room: Room | None, more: Mapping[str, tuple[tuple[str, ...], Handler]] | None = None) -> Starlette:
    """Return the application of a room, with further pages by path: their methods and handler.

    None: there is no store, and there are the further pages only.
    """
    own: dict[str, tuple[tuple[str, ...], Handler]] = {
        "/": (("GET",), runs),
        "/image/{sha256}": (("GET",), image),
        "/run/{run}": (("GET",), trials),
        "/run/{run}/levels/{column:path}": (("GET",), levels),
        "/run/{run}/trial/{row:int}": (("GET",), trial),
        "/run/{run}/twins/{row:int}": (("GET",), twins),
        "/run/{run}/numbers": (("GET",), numbers),
        "/run/{run}/report": (("GET",), report),
        "/run/{run}/export": (("GET",), export),
        "/compare": (("GET",), compare),
    }
    pages: dict[str, tuple[tuple[str, ...], Handler]] = {
        "/style.css": (("GET",), lambda *_: Response(style(), media_type="text/css")),
        "/favicon.ico": (("GET",), lambda *_: Response(status_code=204)),
        "/script.js": (("GET",), lambda *_: Response(script(), media_type="text/javascript")),
        **({} if room is None else own),
        **(more or {}),
    }
    routes = [Route(path, _page(room, handler), methods=list(methods)) for path, (methods, handler) in pages.items()]
    return Starlette(routes=routes)


def _page(room: Room | None, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs in a thread of its own, and says what is wrong in the words of the error."""

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            fields = parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
            request.state.form = dict(fields)
        try:
            return await run_in_threadpool(handler, room, request)
        except _Building as waiting:
            return _building(waiting.run, waiting.built)
        except UnknownNameError as error:
            return problem(error, 404)
        except PrejudgeError as error:
            return problem(error, 409)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a plugin's, or a damaged row: the page says so, and the room stays open
            return problem(error, 500)

    return answer


def problem(error: Exception, status: int) -> Response:
    """Return the page of an error."""
    code = error.code if isinstance(error, PrejudgeError) else ""
    text = str(error) if code else f"{type(error).__name__}: {error}"
    return HTMLResponse(page("problem.html", {"text": text, "code": code, "title": "Not shown"}), status_code=status)


def html(name: str, /, **values: Any) -> Response:
    """Return a page."""
    return HTMLResponse(page(name, values))


def _run(room: Room, request: Request) -> RunRow:
    return get_run(room.store, request.path_params["run"])


def _view(request: Request) -> View:
    return read_view(request.query_params.multi_items())


def runs(room: Room, request: Request) -> Response:
    """Show the runs, the newest first."""
    found = [(run, manifest_of(run)) for run in reversed(list_runs(room.store))]
    pair = _latest([run for run, _ in found])
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


class _Building(Exception):
    """An index that a page needs is being made."""

    def __init__(self, run: RunRow, built: Built) -> None:
        super().__init__(run.name)
        self.run, self.built = run, built


def ready(room: Room, run: RunRow) -> Index:
    """Return the index of a run; while it is made, every page of the run is one that says how far it is."""
    found = room.shelf.index(run)
    if isinstance(found, Built):
        raise _Building(run, found)
    return found


def _building(run: RunRow, built: Built) -> Response:
    response = html("building.html", title=f"Reading {run.name}", run=run, built=built)
    response.headers["Refresh"] = "1"
    return response


def trials(room: Room, request: Request) -> Response:
    """Show the trials that fit, a page at a time."""
    run, view = _run(room, request), _view(request)
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
        pages=_pages(found.rows, place),
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
    }


def _pages(rows: Rows, place: int) -> dict[str, int | None]:
    """Return the first row of the pages around a place; None where there is none."""
    count = len(rows)
    return {
        "first": int(rows[0]) if place > 0 and count else None,
        "previous": int(rows[max(place - PAGE, 0)]) if place > 0 and count else None,
        "next": int(rows[place + PAGE]) if place + PAGE < count else None,
        "last": int(rows[(count - 1) // PAGE * PAGE]) if place + PAGE < count else None,
    }


def levels(room: Room, request: Request) -> Response:
    """Show every level of a facet."""
    run, view, name = _run(room, request), _view(request), request.path_params["column"]
    index = ready(room, run)
    facets = {facet.column.name: facet for facet in index.find(view.filters, view.words, view.where).facets}
    if name not in facets:
        raise UnknownNameError("factor or outcome", name, facets)
    return html(
        "levels.html", title=name, run=run, view=view, facet=facets[name], most=MOST_LISTED, prefix=PREFIX, index=index
    )


def trial(room: Room, request: Request) -> Response:
    """Show one trial in full."""
    run, view, row = _run(room, request), _view(request), request.path_params["row"]
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


def _one(room: Room, run: RunRow, index: Index, row: int) -> Shown:
    if not 0 <= row < index.rows or not (found := shown(room.store, run, index, [row], whole=True)):
        raise UnknownNameError("row", str(row), [], f"The run has {index.rows:,} trials, numbered from 0.")
    return found[0]


def _varying(index: Index) -> list[Column]:
    return [c for c in index.columns.values() if c.role == "factor" and len(c.levels) != 1]


def twins(room: Room, request: Request) -> Response:
    """Show the trials side by side that share all factors but the varied ones, or that share the given columns."""
    run, view, row = _run(room, request), _view(request), request.path_params["row"]
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
    asked = marked(["\n\n".join(text for _, text in two.asked) for two in beside])
    said = marked([two.words for two in beside])
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


def numbers(room: Room, request: Request) -> Response:
    """Show every estimate with the way to the answers behind it; with filters, those of the groups that fit."""
    run, view = _run(room, request), _view(request)
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
    run = _run(room, request)
    path = room.report(run)
    if path is None:
        raise UnknownNameError("report", run.name, [], f"Write it: prejudge score {run.name}", code="view.no-report")
    return HTMLResponse(path.read_text("utf-8"), headers={"Content-Security-Policy": REPORT_POLICY})


def image(room: Room, request: Request) -> Response:
    """Return an image of the store, by its bytes' own type; nothing that could hold a script."""
    data = room.store.blob(request.path_params["sha256"])
    kind = kind_of(data)
    if not kind:
        return PlainTextResponse("not a PNG, JPEG, GIF or WebP image\n", status_code=415)
    return Response(data, media_type=kind)


def export(room: Room, request: Request) -> Response:
    """Return the trials that fit as one file that needs nothing else."""
    run, view = _run(room, request), _view(request)
    index = ready(room, run)
    name = f"{run.name}-answers.html".encode("ascii", "replace").decode().replace("?", "_")
    return HTMLResponse(
        exported(room, run, index, view), headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def compare(room: Room, request: Request) -> Response:
    """Show two runs trial by trial: what each answered, and where they differ."""
    first, second = (get_run(room.store, request.query_params.get(name, "")) for name in ("a", "b"))
    view = _view(request)
    indices = [ready(room, run) for run in (first, second)]
    paired: Pairing = pair(room, first, second, *indices)
    found = paired.find(view.filters)
    place = int(np.searchsorted(found.rows, view.start))
    rows = found.rows[place : place + PAGE]
    texts = [
        shown(room.store, run, index, [int(one) for one in own[rows]])
        for run, index, own in ((first, indices[0], paired.first), (second, indices[1], paired.second))
    ]
    beside = [(int(row), a, b, marked([a.words, b.words])) for row, a, b in zip(rows, *texts, strict=True)]
    return html(
        "compare.html",
        title="Two runs",
        first=first,
        second=second,
        base=f"/compare?{urlencode({'a': first.name, 'b': second.name})}",
        view=view,
        facets=found.facets,
        beside=beside,
        count=len(found.rows),
        total=found.total,
        place=place,
        pages=_pages(found.rows, place),
        paired=paired,
        listed=LISTED,
        prefix=PREFIX,
    )
