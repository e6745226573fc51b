"""The form by which a sample is drawn, and the sample it makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..annotation.drawing import MOST_VERDICTS
from ..store import get_run
from .answering import html, ready
from .clusters import MOST_WAYS, offered
from .columns import Column
from .room import Room
from .sampling import Wanted, draw_sample
from .shelf import Index
from .urls import number, read_view

USUAL = 200
"""Answers that are drawn unless somebody says otherwise."""
MOST_CELLS = 12
"""Levels of a factor that is offered as a cell."""
SEEN = {"": "as the stage needs", "answer": "request and answer", "request": "request only"}
"""What people see. A judge's or classifier's answer is the verdict itself: of its stages, the request only."""


def form(room: Room, request: Request) -> Response:
    """Show the form."""
    run, view = get_run(room.store, request.path_params["run"]), read_view(request.query_params.multi_items())
    index = ready(room, run)
    found = index.find(view.filters, view.words, view.where)
    # What is the same for all of these answers, as are the verdicts of other stages, tells none of them apart.
    coded = [(c, c.codes) for c in index.columns.values() if c.codes is not None and len(c.levels) > 1]
    listed = [c for c, codes in coded if len(found.rows) and np.ptp(np.take(codes, found.rows))]
    verdicts = [c for c in listed if c.role in ("outcome", "status") and len(c.levels) <= MOST_VERDICTS]
    verdicts = verdicts or [index.columns["status"]]
    chosen = request.query_params.get("verdict", "")
    verdict = next((c for c in verdicts if c.name == chosen), sorted(verdicts, key=lambda c: c.role != "outcome")[0])
    ways, usual = offered(index, found.rows, room.clusters(run, index))
    return html(
        "draw.html",
        title="Draw a sample",
        run=run,
        view=view,
        count=len(found.rows),
        verdicts=verdicts,
        verdict=verdict,
        labels=_labels(index, verdict),
        cells=[c for c in listed if c.role == "factor" and c.kind == "levels" and len(c.levels) <= MOST_CELLS],
        ways=ways,
        usual_ways=usual,
        most_ways=MOST_WAYS,
        seen=SEEN,
        usual=min(USUAL, len(found.rows)),
    )


def _labels(index: Index, verdict: Column) -> list[str]:
    """Return the labels that the form offers: the verdict's levels; of numbers in bins, yes and no."""
    return ["1", "0"] if verdict.kind == "numbers" else [word for word in verdict.levels if word]


def drawn(room: Room, samples: Path, request: Request) -> Response:
    """Draw a sample as the form says, and lead to it."""
    run, view = get_run(room.store, request.path_params["run"]), read_view(request.query_params.multi_items())
    given: dict[str, str] = request.state.form
    labels = tuple(dict.fromkeys(filter(None, (one.strip() for one in given.get("labels", "").splitlines()))))
    wanted = Wanted(
        verdict=given.get("verdict", "status"),
        labels=labels,
        n=number(given.get("n", "")),
        cells=tuple(_chosen(given, "cell.")),
        ways=tuple(_chosen(given, "way.")),
        question=given.get("question", ""),
        seen=given.get("seen", ""),
        seed=number(given.get("seed", "")),
        view=view,
    )
    made = draw_sample(room, run, samples, wanted)
    return RedirectResponse(f"/sample/{made.folder.name}", status_code=303)


def _chosen(given: dict[str, str], prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in given if name.startswith(prefix)]
