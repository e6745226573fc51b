"""The trials that fit as one file: for an auditor, without a server, a script or a network."""

from __future__ import annotations

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..contracts.errors import UsageError
from ..engine.manifest import manifest_of
from ..report.pictures import Picture, picture, within
from ..report.render import policy
from ..store import RunRow
from .answering import Pages, ready, run_of, view_of
from .exchanges import Shown, shown
from .pages import page, style
from .room import Room
from .shelf import Index
from .urls import View

MOST_EXPORTED = 5_000
"""Trials of one file: a browser opens them in seconds."""
MOST_PICTURES = 20_000_000
"""Bytes of all images."""


def exported(room: Room, run: RunRow, index: Index, view: View) -> str:
    """Return the page.

    Raises:
        UsageError: too many trials fit.
    """
    found = index.find(view.filters, view.words, view.where)
    if len(found.rows) > MOST_EXPORTED:
        raise UsageError(
            f"{len(found.rows):,} trials fit, and one file holds {MOST_EXPORTED:,}. Filter further; for all of them, "
            "`prejudge cache export` writes a bundle.",
            code="view.export-size",
        )
    rows = shown(room.store, run, index, [int(row) for row in found.rows])
    return page(
        "export.html",
        {
            "title": f"Answers of {run.name}",
            "run": run,
            "manifest": manifest_of(run),
            "view": view,
            "rows": rows,
            "total": found.total,
            "pictures": _pictures(room, rows),
            "style": Markup(style()),  # our own, which the policy names by its hash
            "policy": policy(style(), ""),
            "index": index,
        },
    )


def _pictures(room: Room, rows: list[Shown]) -> dict[str, Picture]:
    names = dict.fromkeys(sha256 for one in rows for _, sha256 in one.images)
    return within(((sha256, _picture(room, sha256)) for sha256 in names), MOST_PICTURES)


def _picture(room: Room, sha256: str) -> Picture:
    try:
        return picture(room.store.blob(sha256))
    except UsageError as error:
        return Picture(problem=str(error).rstrip("."))


def export(room: Room, request: Request) -> Response:
    """Return the trials that fit as one file that needs nothing else."""
    run, view = run_of(room, request), view_of(request)
    index = ready(room, run)
    name = f"{run.name}-answers.html".encode("ascii", "replace").decode().replace("?", "_")
    return HTMLResponse(
        exported(room, run, index, view), headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


PAGES: Pages = {"/run/{run}/export": (("GET",), export)}
