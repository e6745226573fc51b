"""Draw a sample of a run's answers and write it, with or without a browser."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from ..annotation.design import Design, Drawn, Item, Sheet
from ..annotation.drawing import Draw, Levels, Population, draw, new_sample
from ..annotation.samples import Sample, write_sample
from ..contracts.errors import UsageError
from ..contracts.records import Classify
from ..store import RunRow
from .build import reader_of
from .clusters import MOST_WAYS, codes_of, offered
from .columns import Column, Rows
from .exchanges import Shown, shown
from .room import Room
from .shelf import Index
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
    index, view = room.shelf.wait(run), wanted.view
    rows = index.find(view.filters, view.words, view.where).rows
    ways = room.clusters(run, index) if wanted.ways is None else wanted.ways
    population = _population(index, rows, wanted, ways)
    wanted = msgspec.structs.replace(wanted, seed=wanted.seed or secrets.randbelow(2**31))
    sample = draw(population, wanted.n, wanted.seed)
    answers = shown(room.store, run, index, [int(rows[chosen.place]) for chosen in sample.chosen])
    design = _design(run, wanted, population, sample, answers)
    sheet = _sheet(design, wanted, answers, _judging(room, run))
    return write_sample(samples, design, sheet, room.store.blob)


def _population(index: Index, rows: Rows, wanted: Wanted, ways: Sequence[str]) -> Population:
    names = [name for name in offered(index, rows, ways)[0] if name in ways][:MOST_WAYS]
    return Population(
        _levels(index, rows, wanted.verdict),
        tuple(_levels(index, rows, name) for name in wanted.cells),
        {name: codes_of(index, rows, name) for name in names},
    )


def _levels(index: Index, rows: Rows, name: str) -> Levels:
    if name not in index.columns or (codes := index.columns[name].codes) is None:
        raise UsageError(f"{name!r} has no levels that can be listed. Choose another.", code="annotation.column")
    column = index.columns[name]
    numbers = _numbers_of(column)
    return Levels(name, column.levels, np.asarray(codes[rows]), None if numbers is None else numbers[rows])


def _numbers_of(column: Column) -> np.ndarray | None:
    """Return the number of each row, NaN where it is missing; None if the levels are no numbers."""
    if column.values is not None:
        return column.values
    try:
        numbers = np.array([float(word) if word else np.nan for word in column.levels])
    except ValueError:
        return None
    return numbers[column.codes] if len(numbers) and np.isfinite(numbers).any() else None


def _design(run: RunRow, wanted: Wanted, population: Population, sample: Draw, answers: Sequence[Shown]) -> Design:
    numbers = population.verdict.numbers
    items = [
        Drawn(
            secrets.token_hex(5),
            answer.row,
            answer.trial,
            answer.key,
            chosen.stratum,
            chosen.probability,
            float(numbers[chosen.place]) if numbers is not None and np.isfinite(numbers[chosen.place]) else None,
            answer.factors,
        )
        for chosen, answer in zip(sample.chosen, answers, strict=True)
    ]
    return Design(
        sample=new_sample(),
        run=run.name,
        head=(run.head or b"").hex(),
        filters=dict(wanted.view.filters),
        words=wanted.view.words,
        where=wanted.view.where,
        verdict=wanted.verdict,
        cells=wanted.cells,
        seed=wanted.seed,
        drawn=time.time(),
        population=len(population.verdict.codes),
        strata=sample.strata,
        items=tuple(items),
        ways=sample.ways,
    )


def _sheet(design: Design, wanted: Wanted, answers: Sequence[Shown], judging: set[str]) -> Sheet:
    return Sheet(
        sample=design.sample,
        question=wanted.question.strip()[:2000] or "Which label fits the answer?",
        labels=wanted.labels,
        seed=design.seed,
        items=tuple(
            _item(drawn.item, answer, wanted.seen or ("request" if answer.stage in judging else "answer"))
            for drawn, answer in zip(design.items, answers, strict=True)
        ),
    )


def _item(name: str, answer: Shown, seen: str) -> Item:
    images = tuple(dict.fromkeys(sha256 for _, sha256 in answer.images))
    return Item(name, answer.asked, answer.words if seen == "answer" else None, images)


def _judging(room: Room, run: RunRow) -> set[str]:
    """Return the stages whose answers are verdicts: those of a judge or classifier."""
    stages = reader_of(room.catalogue, run).stages
    return {name for name, stage in stages.items() if stage.role in JUDGES or stage.operation is Classify}
