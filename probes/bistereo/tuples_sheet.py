"""From drafted tuples to annotation sheets, and from annotated sheets to a file for `bistereo-tuples`.

A sheet is a CSV file with a row per tuple and an empty column `stereotype`. Every annotator completes a copy: 1 if the
tuple is a stereotype of their society, 0 if it is not, empty if they cannot decide (BIStereo, appendix E).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ...core.contracts.errors import DataError
from ...core.tables import Form, Repeats, Row, csv_text, parse_file
from .tuples_file import COLUMNS, MARKS, SENTIMENTS, STANDINGS, TERMS, Tuple, read_tuples
from .tuples_tests import build

NAME = ("dimension", "descriptor", "term", "attribute", "sentiment")
"""Columns that identify a tuple."""
ADDED = ("opposite", "standing", "mirrored")
"""Further columns that the study needs."""
RATING = "stereotype"
ANSWERS = {"1": 1, "0": 0}
SHEET = (RATING, *NAME, *ADDED, "times")
Cells = dict[str, str]


class Annotated(msgspec.Struct, frozen=True):
    """The ratings of a tuple."""

    cells: Cells
    """The columns of `NAME` and `ADDED`."""
    ratings: dict[str, int]
    """By annotator; annotators without a rating are absent."""

    @property
    def name(self) -> str:
        """Return the tuple as one text."""
        return "/".join(self.cells[column] for column in NAME)

    @property
    def score(self) -> int:
        """Return the number of annotators who called it a stereotype."""
        return sum(self.ratings.values())


def draft_rows(drafts: Iterable[Mapping[str, Any]]) -> list[Cells]:
    """Return a row per distinct tuple of the drafts, with the number of its drafts.

    `opposite` and `standing` are filled in if the printed tuples have them; people complete the rest.

    Args:
        drafts: Readable observations of `bistereo-tuples-draft`.

    Raises:
        DataError: there is no draft.
    """
    times: dict[tuple[str, ...], int] = {}
    for draft in drafts:
        for descriptor, attribute in json.loads(draft["tuples"]):
            name: tuple[str, ...] = (draft["dimension"], descriptor, draft["term"], attribute, draft["sentiment"])
            times[name] = times.get(name, 0) + 1
    if not times:
        raise DataError("the run has no drafted tuple. See the model's answers in its report.", code="run.no-answers")
    printed = read_tuples(None)
    standings = {(t.dimension, t.descriptor): t.standing for t in printed}
    opposites = {t.attribute: t.opposite for t in printed if t.opposite}
    found = []
    for name, count in times.items():
        cells = dict(zip(NAME, name, strict=True))
        negative = cells["sentiment"] == "negative"
        cells["opposite"] = opposites.get(cells["attribute"], "") if negative else ""
        cells["standing"] = standings.get((cells["dimension"], cells["descriptor"]), "")
        cells["mirrored"] = ""
        found.append({RATING: "", **cells, "times": str(count)})
    return found


def sheet_text(rows: Sequence[Cells], seed: int) -> str:
    """Return an annotation sheet: the rows in random order, so that it does not show how they were drafted."""
    shuffled = sorted(rows, key=lambda row: tuple(row[column] for column in NAME))
    random.Random(seed).shuffle(shuffled)
    return csv_text(SHEET, shuffled)


def read_sheets(paths: Sequence[str]) -> list[Annotated]:
    """Read annotated sheets, one per annotator, named by the file or the column `annotator`.

    Returns:
        The tuples by name, with the ratings of all sheets.

    Raises:
        DataError: a sheet or one of its rows cannot be used, an annotator rates a tuple twice, or sheets differ in
            another column of a tuple.
    """
    cells: dict[tuple[str, ...], Cells] = {}
    ratings: dict[tuple[str, ...], dict[str, int]] = {}
    repeats = Repeats((RATING,))

    def take(row: Row) -> None:
        name = tuple(_checked(row, column) for column in NAME)
        rating = None if row.optional(RATING) is None else ANSWERS[row.choice(RATING, tuple(ANSWERS))]
        annotator = row.optional("annotator") or Path(row.path).stem
        if rating is not None:
            repeats.check(row, (annotator, name), f"the rating of {', '.join(name[1:4])!r} by {annotator!r}")
        _merge(row, cells.setdefault(name, dict(zip(NAME, name, strict=True))))
        by_annotator = ratings.setdefault(name, {})
        if rating is not None:
            by_annotator[annotator] = rating

    for path in paths:
        parse_file(path, Form((RATING, *NAME), ("annotator", *ADDED)), take)
    return [Annotated(cells[name], ratings[name]) for name in sorted(cells)]


def long_ratings(annotated: Iterable[Annotated]) -> pl.DataFrame:
    """Return a row per rating: `tuple`, `annotator`, `stereotype`; an unrated tuple has one row without a rating."""
    rows: list[tuple[str, str | None, int | None]] = []
    for one in annotated:
        rows += [(one.name, who, rating) for who, rating in one.ratings.items()] or [(one.name, None, None)]
    return pl.DataFrame(rows, schema={"tuple": pl.String, "annotator": pl.String, RATING: pl.Int64}, orient="row")


def tuples_text(annotated: Iterable[Annotated], least: int) -> str:
    """Return a file of tuples for `bistereo-tuples`: those that at least `least` annotators called a stereotype.

    Raises:
        DataError: there is no such tuple.
    """
    kept = [one for one in annotated if one.score >= least]
    if not kept:
        raise DataError(
            f"no tuple was called a stereotype by {least} annotators or more. Lower --least.",
            code="data.no-match",
        )
    rows = [
        {**dict.fromkeys(ADDED, ""), **one.cells, "score": str(one.score), "annotators": str(len(one.ratings))}
        for one in kept
    ]
    return csv_text((*COLUMNS, "annotators"), rows)


def advice(annotated: Sequence[Annotated], least: int) -> Iterator[str]:
    """Yield lines on the tests that the tuples make, and on missing columns."""
    kept = [one for one in annotated if one.score >= least]
    negative = [one for one in kept if one.cells["sentiment"] == "negative"]
    yield f"{len(kept)} of {len(annotated)} tuples are kept, {len(negative)} of them negative."
    tests = build(map(_as_tuple, kept), least, unscored=False).where({"validated": [True]})
    yield f"They make {len(tests)} analogy tests, and those of the other gender of tuples that may be `mirrored`."
    for lacking, what in (
        ([one for one in negative if not one.cells.get("opposite")], "negative tuples have no opposite"),
        ([one for one in kept if not one.cells.get("standing")], "tuples have no standing"),
    ):
        if lacking:
            yield f"{len(lacking)} {what}, such as ({', '.join(lacking[0].cells[part] for part in NAME[1:4])})."


def _as_tuple(one: Annotated) -> Tuple:
    cells = one.cells
    return Tuple(
        dimension=cells["dimension"],
        descriptor=cells["descriptor"],
        term=cells["term"],
        attribute=cells["attribute"],
        sentiment=cells["sentiment"],
        score=one.score,
        opposite=cells.get("opposite"),
        standing=cells.get("standing", ""),
        mirrored=MARKS[cells.get("mirrored", "")],
    )


def _checked(row: Row, column: str) -> str:
    known = {"term": TERMS, "sentiment": SENTIMENTS}.get(column)
    return row.filled(column) if known is None else row.choice(column, known)


def _merge(row: Row, cells: Cells) -> None:
    """Add the further columns of a row; all sheets must have the same values."""
    for column in ADDED:
        if (said := row.optional(column)) is None:
            continue
        if column in (marks := {"standing": STANDINGS, "mirrored": tuple(MARKS)}):
            said = row.choice(column, [name for name in marks[column] if name])
        if (known := cells.setdefault(column, said)) != said:
            raise row.fault(
                f"{column} is {said!r}, but {known!r} in another sheet. Use one value in both.", "data.contradiction"
            )
