"""What people say of the associations that a judge rated: sheets to complete, drawn by strata, and completed sheets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.tables import Form, Repeats, Row, parse_file
from .associations import judgements
from .content_words import lemmas

NAME = ("descriptor", "word")
SHEET = ("level", *NAME)
RATED = (*SHEET, "annotator")


def stratum() -> pl.Expr:
    """Return the stratum of an association: the judge's mean level of it, rounded."""
    return pl.col("level").round().cast(pl.Int64)


def rows_to_rate(observations: pl.DataFrame, rows: int, seed: int) -> pl.DataFrame:
    """Draw associations that the judge rated: about as many of each level, spread over dimensions, in random order.

    Within a stratum each association has the same chance, whatever its dimension and setting, so that
    `level_corrected` can weight the strata.

    Args:
        observations: All stages of a run, stacked.
        rows: How many to draw; all of them where there are fewer.
        seed: Of the draw and the order.

    Raises:
        DataError: the judge rated nothing.
    """
    rated = judgements(observations).drop_nulls("level")
    if rated.is_empty():
        raise DataError(
            "the run has no judged association. Name a judge: prejudge run ... --model judge=NAME.",
            code="run.no-answers",
        )
    said = observations.filter(stage="levels")
    said = said.select(*NAME, said="said" if "said" in said.columns else "word").unique(NAME, maintain_order=True)
    pairs = rated.group_by(NAME, maintain_order=True).agg(pl.col("dimension").first(), pl.col("level").mean())
    pairs = pairs.join(said, on=NAME, maintain_order="left").with_columns(stratum())
    random = np.random.default_rng(seed)
    left, drawn = min(rows, pairs.height), []
    strata = sorted((part for (_,), part in pairs.group_by("level")), key=lambda part: part.height)
    for place, part in enumerate(strata):
        few = min(part.height, left // (len(strata) - place))
        left -= few
        # A random start in the list by dimension, and equal steps: each dimension has its share.
        order = part.with_columns(random=random.random(part.height)).sort("dimension", "random")
        steps = (np.arange(few) + random.random()) * part.height / max(few, 1)
        drawn.append(order[steps.astype(np.int64)])
    found = pl.concat(drawn)
    return found.select("descriptor", word="said")[random.permutation(found.height)]


def read_levels(paths: Sequence[str]) -> pl.DataFrame:
    """Read completed sheets, a row per rating.

    The column `annotator`, or of several sheets the name of the file, names the annotator. In a single sheet without
    that column, the rows of an association are those of annotators 1, 2 and so on.

    Returns:
        `descriptor`, `word` (as written), `name`, `lemma`, `annotator`, and `level`, null where it is empty.

    Raises:
        DataError: a file cannot be read or lacks a column, or a level is not a number from 1 to 5.
    """
    repeats = Repeats(("level",))

    def rating_of(row: Row) -> tuple[Row, str | None, float | None]:
        annotator = row.optional("annotator") or (Path(row.path).stem if len(paths) > 1 else None)
        level = _level(row)
        if annotator is not None and level is not None:
            words = tuple(" ".join(row.cells[name].split()).casefold() for name in NAME)
            repeats.check(row, (annotator, *words), f"the rating of {' / '.join(words)!r} by {annotator!r}")
        return row, annotator, level

    ratings = [rating for path in paths for rating in parse_file(path, Form(SHEET, ("annotator",)), rating_of).values]
    rows = [row for row, _, _ in ratings]
    frame = pl.DataFrame(
        {
            "descriptor": [row.cells["descriptor"].strip() for row in rows],
            "word": [row.cells["word"].strip() for row in rows],
            "name": [row.cells["descriptor"].strip().casefold() for row in rows],
            "lemma": lemmas([row.cells["word"] for row in rows]),
            "annotator": pl.Series([annotator for _, annotator, _ in ratings], dtype=pl.String),
            "level": pl.Series([level for _, _, level in ratings], dtype=pl.Float64),
        }
    )
    number = pl.int_range(1, pl.len() + 1).over("name", "lemma").cast(pl.String)
    return frame.with_columns(pl.col("annotator").fill_null(number))


def _level(row: Row) -> float | None:
    if row.optional("level") is None:
        return None
    if not 1 <= (value := row.number("level")) <= 5:
        raise row.fault(f"level {value:g} is not from 1 to 5. Leave it empty where missing.", "data.number")
    return value
