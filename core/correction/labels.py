"""The labels of a sample, as answers of a run with what people said of them and their chance of being labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import polars as pl

from ..contracts import PROMPT_KEY
from ..contracts.errors import DataError, UsageError
from ..scoring.score import Scores
from ..view.judged import settled
from ..view.labels import SHEET, Sample
from ..view.sampling import Design
from ..view.urls import read_view
from ..view.writing import worded

UNDRAWN = (
    "{what}, so it says nothing of the answers that nobody labelled. Draw a sample (prejudge view), or correct by an "
    "error matrix that is known from elsewhere (--matrix)."
)


class Told(NamedTuple):
    """The labels of a sample."""

    design: Design
    labels: tuple[str, ...]
    """Every label that could be given."""
    frame: pl.DataFrame
    """A row per answer that most people agree on: `trial`, `key` (hex), `label` and `chance`."""
    unsettled: int
    """Answers on which people disagree, or that nobody could tell."""


def sample_at(path: str | Path) -> Sample:
    """Return the sample of a folder, or of a file of labels in it.

    Raises:
        DataError: there is nothing.
        UsageError: it is no random sample that was drawn here.
    """
    place = Path(path)
    if not place.exists():
        raise DataError(f"there is no {str(path)!r}. Name the folder of a sample.", code="annotation.sample")
    folder = place if place.is_dir() else place.parent
    sample = Sample(folder)
    if not (folder / SHEET).is_file() or not sample.is_drawn:
        what = f"{str(path)!r} is no sample that was drawn at random from a run"
        raise UsageError(UNDRAWN.format(what=what), code="annotation.not-random")
    return sample


def told_of(sample: Sample, scores: Scores) -> Told:
    """Return the labels of a sample.

    Raises:
        UsageError: it is of another run, was not labelled in its random order, or nobody labelled it.
        DataError: it cannot be read.
    """
    design, given = sample.design, sample.labels()
    head = (scores.run.head or b"").hex()
    if design.run != scores.run.name or (design.head and head and design.head != head):
        raise UsageError(
            f"the labels of {sample.folder.name!r} are of the answers of {design.run}, not of {scores.run.name}: they "
            f"correct nothing here. Score {design.run} with them, or draw a sample of this run.",
            code="annotation.other-run",
        )
    if not sample.drawn_at_random(given):
        what = f"the labelled answers of {sample.folder.name!r} are not the first ones of their random order"
        raise UsageError(UNDRAWN.format(what=what), code="annotation.not-random")
    gold, unsettled = settled(given)
    if not gold:
        raise UsageError(
            f"{sample.folder.name!r} has no label on which people agree. Label it: prejudge view --label "
            f"{sample.folder}",
            code="annotation.few",
        )
    shares = _settled_by_stratum(design, gold)
    rows = [
        {"trial": one.trial, "key": one.key, "label": gold[one.item], "chance": one.probability * shares[one.stratum]}
        for one in design.items
        if one.item in gold
    ]
    return Told(design, sample.sheet.labels, pl.DataFrame(rows), unsettled)


def _settled_by_stratum(design: Design, gold: Collection[str]) -> dict[int, float]:
    """Return the share of each stratum's drawn answers that have a label.

    Whoever stops early has labelled a random part. People may disagree more on one group or verdict than on another,
    so each stratum has a share of its own; if one has no label at all, the share of the whole sample is that of each.
    """
    drawn = Counter(one.stratum for one in design.items)
    told = Counter(one.stratum for one in design.items if one.item in gold)
    every = len(gold) / len(design.items)
    return {number: told[number] / n if len(told) == len(drawn) else every for number, n in drawn.items()}


def inside(design: Design, observations: pl.DataFrame) -> pl.Series | None:
    """Return which observations the sample was drawn from; None if that cannot be told from them."""
    if not design.query:
        return pl.Series([True] * observations.height)
    view = read_view(parse_qsl(design.query.removeprefix("?"), keep_blank_values=True))
    if view.words:
        return None
    fits = pl.Series([True] * observations.height)
    for name, levels in view.filters.items():
        if name == "stage" and name not in observations.columns:
            continue
        if name not in observations.columns or name == PROMPT_KEY:
            return None
        fits = fits & worded(observations[name]).is_in(list(levels))
    return fits
