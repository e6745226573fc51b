"""Draw a sample of a run's answers and write it, with or without a browser."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..contracts.errors import UsageError
from ..contracts.records import Classify
from ..store import RunRow
from .build import reader_of
from .clusters import clusters_of, offered
from .exchanges import Shown, shown
from .labels import Sample, write_sample
from .room import Room
from .sampling import Design, Drawn, Item, Sheet, draw, new_sample, numbers_of, strata_of
from .urls import View

JUDGES = ("judge", "sentiment", "toxicity")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which sample to draw."""

    verdict: str
    """The outcome whose levels people check."""
    labels: tuple[str, ...]
    n: int
    cells: tuple[str, ...] = ()
    """Factors within whose levels it is drawn."""
    ways: tuple[str, ...] | None = None
    """Columns that make clusters; None: those of the study's measures."""
    question: str = ""
    seen: str = ""
    """`answer` or `request`; empty: as the stage needs."""
    seed: int = 0
    """0: any."""
    view: View = View()
    """The answers to draw from."""


def draw_sample(room: Room, run: RunRow, samples: Path, wanted: Wanted) -> Sample:
    """Draw a sample and write it.

    Raises:
        UsageError: a column has no levels, nothing fits, or there are not two labels.
    """
    if len(wanted.labels) < 2:
        raise UsageError("A question needs two labels or more, one a line.", code="annotation.labels")
    index, verdict, cells = room.shelf.wait(run), wanted.verdict, wanted.cells
    seed = wanted.seed or secrets.randbelow(2**31)
    rows = index.find(wanted.view.filters, wanted.view.words, wanted.view.where).rows
    strata, chosen = draw(index, rows, verdict, cells, wanted.n, seed)
    ways = room.clusters(run, index) if wanted.ways is None else wanted.ways
    known = [name for name in offered(index, rows, ways)[0] if name in ways]
    items = shown(room.store, run, index, [row for row, _, _ in chosen])
    values, names, sample = numbers_of(index.columns[verdict]), [secrets.token_hex(5) for _ in chosen], new_sample()
    design = Design(
        sample=sample,
        run=run.name,
        head=(run.head or b"").hex(),
        query=msgspec.structs.replace(wanted.view, start=0).query,
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
    judging = _judging(room, run)
    sheet = Sheet(
        sample=sample,
        question=wanted.question.strip()[:2000] or "Which label fits the answer?",
        labels=wanted.labels,
        seed=seed,
        items=tuple(
            _item(name, one, wanted.seen or ("request" if one.stage in judging else "answer"))
            for name, one in zip(names, items, strict=True)
        ),
    )
    return write_sample(samples, design, sheet, room.store.blob)


def _item(name: str, one: Shown, seen: str) -> Item:
    images = tuple(dict.fromkeys(sha256 for _, sha256 in one.images))
    return Item(name, one.asked, one.words if seen == "answer" else None, images)


def _judging(room: Room, run: RunRow) -> set[str]:
    """Return the stages whose answers are verdicts: those of a judge or classifier."""
    stages = reader_of(room.catalogue, run).stages
    return {name for name, stage in stages.items() if stage.role in JUDGES or stage.operation is Classify}


def _number(values: NDArray[np.float64] | None, row: int) -> float | None:
    return None if values is None or not np.isfinite(values[row]) else float(values[row])
