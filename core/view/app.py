"""The application: the pages of a room, each in a thread of its own, and the words of an error where one is met."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..contracts.errors import PrejudgeError, UnknownNameError, UsageError
from ..store.blame import blame
from . import browsing, certified, export, paired, pairs, results, single
from .answering import Handler, Pages, Waiting, problem, waiting
from .guard import MOST_FIELDS
from .pages import SERVED, script, style
from .room import Room

OWN: Pages = {
    **browsing.PAGES,
    **single.PAGES,
    **results.PAGES,
    **export.PAGES,
    **certified.PAGES,
    **paired.PAGES,
    **pairs.PAGES,
}


def application(room: Room | None, more: Pages | None = None) -> Starlette:
    """Return the application of a room, with further pages.

    None: there is no store, and there are the further pages only.
    """
    pages: Pages = {
        "/style.css": (("GET",), lambda *_: Response(style(), media_type="text/css")),
        "/favicon.ico": (("GET",), lambda *_: Response(status_code=204)),
        "/script.js": (("GET",), lambda *_: Response(script(), media_type="text/javascript")),
        **({} if room is None else OWN),
        **(more or {}),
    }
    served = frozenset(pages)
    routes = [
        Route(path, _page(room, handler, served), methods=list(methods)) for path, (methods, handler) in pages.items()
    ]
    return Starlette(routes=routes)


def _page(room: Room | None, handler: Handler, served: frozenset[str]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs in a thread of its own, and says what is wrong in the words of the error."""

    async def answer(request: Request) -> Response:
        SERVED.set(served)
        if request.method == "POST":
            try:
                request.state.form = _fields(await request.body())
            except ClientDisconnect:
                return Response(status_code=400)  # nobody waits for it
            except ValueError:
                return problem(UsageError(f"a form has more than {MOST_FIELDS:,} fields.", code="view.form"), 413)
        try:
            return await run_in_threadpool(_answer, handler, room, request)
        except Waiting as made:
            return waiting(made.run, made.built)
        except UnknownNameError as error:
            return problem(error, 404)
        except PrejudgeError as error:
            return problem(error, 409)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a plugin's: the page says so, and the room stays open
            return problem(error, 500)

    return answer


def _answer(handler: Handler, room: Room | None, request: Request) -> Response:
    """Return what a handler answers; an unexpected error of a damaged store becomes one that names the row."""
    try:
        return handler(room, request)
    except Exception as error:
        if room is not None:
            blame(room.store, error)
        raise


def _fields(body: bytes) -> dict[str, str]:
    text = body.decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
