"""The form by which a sample is drawn, and the sample it makes."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..contracts.errors import UsageError
from ..contracts.records import Classify
from ..store import RunRow, get_run
from .answering import html, ready
from .build import reader_of
from .clusters import MOST_WAYS, clusters_of, offered
from .columns import Column
from .exchanges import Shown, shown
from .labels import write_sample
from .room import Room
from .sampling import MOST_VERDICTS, Design, Drawn, Item, Sheet, draw, new_sample, numbers_of, strata_of
from .shelf import Index
from .urls import number, read_view

USUAL = 200
"""Answers that are drawn unless somebody says otherwise."""
MOST_CELLS = 12
"""Levels of a factor that is offered as a cell."""
JUDGES = ("judge", "sentiment", "toxicity")
SEEN = {"": "as the stage needs", "answer": "request and answer", "request": "request only"}
"""What people see. A judge's or classifier's answer is the verdict itself: of its stages, the request only."""


def form(room: Room, request: Request) -> Response:
    """Show the form."""
    run, view = get_run(room.store, request.path_params["run"]), read_view(request.query_params.multi_items())
    index = ready(room, run)
    found = index.find(view.filters, view.words, view.where)
    listed = [c for c in index.columns.values() if c.codes is not None]
    verdicts = [c for c in listed if c.role in ("outcome", "status") and 1 < len(c.levels) <= MOST_VERDICTS]
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
        cells=[c for c in listed if c.role == "factor" and c.kind == "levels" and 1 < len(c.levels) <= MOST_CELLS],
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
    index = room.shelf.wait(run)
    labels = tuple(dict.fromkeys(filter(None, (one.strip() for one in given.get("labels", "").splitlines()))))
    if len(labels) < 2:
        raise UsageError("A question needs two labels or more, one a line.", code="annotation.labels")
    verdict, cells, clusters = given.get("verdict", "status"), _chosen(given, "cell."), _chosen(given, "way.")
    seed = number(given.get("seed", "")) or secrets.randbelow(2**31)
    rows = index.find(view.filters, view.words, view.where).rows
    strata, chosen = draw(index, rows, verdict, cells, number(given.get("n", "")), seed)
    known = [name for name in offered(index, rows, clusters)[0] if name in clusters]
    items = shown(room.store, run, index, [row for row, _, _ in chosen])
    values, names, sample = numbers_of(index.columns[verdict]), [secrets.token_hex(5) for _ in chosen], new_sample()
    design = Design(
        sample=sample,
        run=run.name,
        head=(run.head or b"").hex(),
        query=view.query,
        verdict=verdict,
        cells=tuple(cells),
        seed=seed,
        drawn=time.time(),
        population=len(rows),
        strata=tuple(strata),
        items=tuple(
            Drawn(name, row, one.trial, one.key, stratum, probability, _number(values, row), one.factors)
            for name, one, (row, stratum, probability) in zip(names, items, chosen, strict=True)
        ),
        ways=clusters_of(index, rows, strata_of(index, rows, verdict, cells)[1], known),
    )
    verdict_stages = _judging(room, run)
    sheet = Sheet(
        sample=sample,
        question=given.get("question", "").strip()[:2000] or "Which label fits the answer?",
        labels=labels,
        seed=seed,
        items=tuple(
            _item(name, one, given.get("seen", "") or ("request" if one.stage in verdict_stages else "answer"))
            for name, one in zip(names, items, strict=True)
        ),
    )
    made = write_sample(samples, design, sheet, room.store.blob)
    return RedirectResponse(f"/sample/{made.folder.name}", status_code=303)


def _chosen(given: dict[str, str], prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in given if name.startswith(prefix)]


def _item(name: str, one: Shown, seen: str) -> Item:
    images = tuple(dict.fromkeys(sha256 for _, sha256 in one.images))
    return Item(name, one.asked, one.words if seen == "answer" else None, images)


def _judging(room: Room, run: RunRow) -> set[str]:
    """Return the stages whose answers are verdicts: those of a judge or classifier."""
    stages = reader_of(room.catalogue, run).stages
    return {name for name, stage in stages.items() if stage.role in JUDGES or stage.operation is Classify}


def _number(values: NDArray[np.float64] | None, row: int) -> float | None:
    return None if values is None or not np.isfinite(values[row]) else float(values[row])
