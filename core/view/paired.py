"""Two runs trial by trial: the trials of one name in both, as columns with what each answered."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from ..catalogue.study import SUBJECT
from ..engine.manifest import manifest_of
from ..report.marked import marked
from ..store import RunRow, get_run
from .answering import Pages, html, ready, view_of
from .browsing import LISTED, PAGE, pages_around
from .columns import Column, Filters, Found, Rows, find
from .exchanges import shown
from .room import Room
from .shelf import Index
from .urls import PREFIX

SAME, OTHER = "same words", "other words"
KEPT = 2
"""Pairings that are kept in memory."""


class Pairing(msgspec.Struct, frozen=True):
    """The trials that two runs have in common."""

    first: Rows
    """Row in the first run, in its plan order."""
    second: Rows
    columns: dict[str, Column]
    only_first: int
    only_second: int

    def find(self, filters: Filters) -> Found:
        """Return which of the common trials fit, numbered from 0."""
        return find(self.columns, filters)


def pair(room: Room, first: RunRow, second: RunRow, a: Index, b: Index) -> Pairing:
    """Return the common trials of two runs, found by stage and name; factors are those of the first."""
    kept = room.kept.setdefault("pairs", {})
    name = (a.folder, b.folder)
    if name not in kept:
        while len(kept) >= KEPT:
            kept.pop(next(iter(kept)))
        kept[name] = _pair(a, b)
    found: Pairing = kept[name]
    return found


def _pair(a: Index, b: Index) -> Pairing:
    _, ours, theirs = np.intersect1d(a.trial_marks, b.trial_marks, return_indices=True)
    order = np.argsort(ours, kind="stable")
    ours, theirs = ours[order], theirs[order]
    alike = a.answer_marks[ours] == b.answer_marks[theirs]
    columns = {"answers": Column("answers", "comparison", "levels", (SAME, OTHER), (~alike).astype(np.uint8))}
    for role in ("status", "outcome"):
        for name in [name for name, column in a.columns.items() if column.role == role and name in b.columns]:
            one, two = a.columns[name].taken(ours), b.columns[name].taken(theirs)
            for column, which in ((one, "first"), (two, "second")):
                if column.codes is not None:
                    own = f"{name}, {which} run"
                    columns[own] = msgspec.structs.replace(column, name=own, role="comparison")
    for name, column in a.columns.items():
        if column.role in ("factor", "stage"):
            columns[name] = column.taken(ours)
    return Pairing(ours, theirs, columns, a.rows - len(ours), b.rows - len(ours))


def _models(first: RunRow, second: RunRow) -> tuple[str, str]:
    """Return what two runs are called side by side: by their models, numbered where it is one."""
    studies = [manifest_of(run) for run in (first, second)]
    a, b = (m.study.roles.get(SUBJECT) or next((i.model for i in m.identities.values()), "") for m in studies)
    return (a, b) if a and b and a != b else (f"{a or 'run'} (first)", f"{b or 'run'} (second)")


def compare(room: Room, request: Request) -> Response:
    """Show two runs trial by trial: what each answered, and where they differ."""
    first, second = (get_run(room.store, request.query_params.get(name, "")) for name in ("a", "b"))
    view = view_of(request)
    indices = [ready(room, run) for run in (first, second)]
    paired: Pairing = pair(room, first, second, *indices)
    found = paired.find(view.filters)
    place = int(np.searchsorted(found.rows, view.start))
    rows = found.rows[place : place + PAGE]
    texts = [
        shown(room.store, run, index, [int(one) for one in own[rows]])
        for run, index, own in ((first, indices[0], paired.first), (second, indices[1], paired.second))
    ]
    beside = [(int(row), a, b, marked([a.opening, b.opening])) for row, a, b in zip(rows, *texts, strict=True)]
    return html(
        "compare.html",
        title="Two runs",
        models=_models(first, second),
        first=first,
        second=second,
        base=f"/compare?{urlencode({'a': first.name, 'b': second.name})}",
        view=view,
        facets=found.facets,
        beside=beside,
        count=len(found.rows),
        total=found.total,
        place=place,
        pages=pages_around(found.rows, place),
        paired=paired,
        listed=LISTED,
        prefix=PREFIX,
    )


PAGES: Pages = {"/compare": (("GET",), compare)}
