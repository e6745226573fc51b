"""From answers in words to associations: which words were said of which descriptors, where, and how often. Pure.

Three stages of a discovery study answer in words: `completions` (one `word` each), `descriptions` and `impressions`
(a `text` about an image). Every other stage is about associations that these gave.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ...core.contracts.errors import DataError
from .content_words import content_words, lemmas
from .options import DoraOptions
from .salience import METHODS, STRENGTH, Reading, measure
from .terms import ABSENT, CELL, PAIR, PLACE, STAGES


def mentions(observations: pl.DataFrame) -> pl.DataFrame:
    """Return a row per mention of a word: `modality`, `setting`, `dimension`, `descriptor`, `word`, `document`, `key`.

    Completions are lemmas; texts are split into lemmas of their content words. What could not be read says nothing
    and is left out. `document` numbers the answers that are independent of each other: all texts about one image in
    one setting are one document.

    Args:
        observations: Those of one stage, or of several stacked with a column `stage`.

    Raises:
        DataError: a column is absent.
    """
    if lacking := [name for name in (*PLACE, "status", "key") if name not in observations.columns]:
        raise DataError(
            f"observations have no column {', '.join(lacking)}, so they name no associations.",
            code="data.column-missing",
        )
    rows = _complete(observations).filter((pl.col("status") == "ok") & pl.col("descriptor").is_not_null())
    document = pl.struct("modality", "setting", "descriptor", pl.coalesce("image", pl.col("key").bin.encode("hex")))
    rows = rows.with_columns(document=document.rank("dense"))
    words = rows.filter(pl.col("word").is_not_null())
    texts = rows.filter(pl.col("word").is_null() & pl.col("text").is_not_null())
    said = pl.concat(
        [
            words.with_columns(word=pl.Series(lemmas(words["word"].to_list()), dtype=pl.String)),
            texts.with_columns(
                word=pl.Series(content_words(texts["text"].to_list()), dtype=pl.List(pl.String))
            ).explode("word"),
        ]
    )
    return said.filter(pl.col("word").is_not_null() & (pl.col("word") != "")).select(*PAIR, "document", "key")


def count_pairs(said: pl.DataFrame) -> pl.DataFrame:
    """Return the co-occurrences in `mentions`: each pair with `count`, its mentions, and `documents` with any."""
    return said.group_by(*PAIR, maintain_order=True).agg(
        count=pl.len(), documents=pl.col("document").n_unique(), keys=pl.col("key").unique(maintain_order=True).head(3)
    )


def measure_cells(pairs: pl.DataFrame, level: float = 0.05, reading: Reading | None = None) -> pl.DataFrame:
    """Return every pair with what each method says of it (`salience.measure`), by modality and setting.

    A descriptor that stands in two dimensions is one descriptor: what was said of it is measured together, and the
    row of each dimension has the result, with its own `count` and `documents`.
    """
    parts = pairs.partition_by(*CELL, maintain_order=True) or [pairs]
    return pl.concat([_measured(part, level, reading) for part in parts])


def with_answers(pairs: pl.DataFrame, observations: pl.DataFrame) -> pl.DataFrame:
    """Add what the later stages said of each pair.

    `sentiment` and `toxicity` are labels in small letters, null where none could be read, and `sentiment_status` and
    `toxicity_status` say why (`absent`: not asked); `level` is the mean of `judgements` readable judgements.
    """
    for stage in ("sentiment", "toxicity"):
        pairs = _labelled(pairs, observations, stage)
    levels = judgements(observations).drop_nulls("level").group_by(PAIR)
    means = levels.agg(level=pl.col("level").mean(), judgements=pl.len().cast(pl.Int64))
    joined = pairs.join(means, on=PAIR, how="left", maintain_order="left")
    return joined.with_columns(pl.col("judgements").fill_null(0))


def judgements(observations: pl.DataFrame) -> pl.DataFrame:
    """Return one row per judgement of a pair: `PAIR`, `judgement`, `status`, and `level`, null where unreadable."""
    if "level" not in observations.columns:
        schema = dict.fromkeys((*PAIR, "status"), pl.String)
        return pl.DataFrame(schema=schema | {"judgement": pl.Int64, "level": pl.Float64})
    level = pl.when(pl.col("status") == "ok").then(pl.col("level").cast(pl.Float64))
    return observations.filter(pl.col("stage") == "levels").select(*PAIR, "judgement", "status", level=level)


def _labelled(pairs: pl.DataFrame, observations: pl.DataFrame, stage: str) -> pl.DataFrame:
    if "label" not in observations.columns or not (observations["stage"] == stage).any():
        nothing = pl.lit(None, dtype=pl.String)
        return pairs.with_columns(nothing.alias(stage), pl.lit(ABSENT).alias(f"{stage}_status"))
    rows = observations.filter(pl.col("stage") == stage).unique(PAIR, keep="first", maintain_order=True)
    known = rows.select(
        *PAIR,
        pl.when(pl.col("status") == "ok").then(pl.col("label").str.to_lowercase()).alias(stage),
        pl.col("status").alias(f"{stage}_status"),
    )
    joined = pairs.join(known, on=PAIR, how="left", maintain_order="left")
    return joined.with_columns(pl.col(f"{stage}_status").fill_null(ABSENT))


def ranked(pairs: pl.DataFrame, method: str) -> pl.DataFrame:
    """Return associations strongest first, by a method's score or, for `all`, by how often they were said."""
    column = STRENGTH.get(method, "count")
    return pairs.sort([column, "count", *PAIR], descending=[method != "fisher", True, *[False] * len(PAIR)])


def _measured(part: pl.DataFrame, level: float, reading: Reading | None) -> pl.DataFrame:
    together = part.group_by("descriptor", "word", maintain_order=True).agg(pl.col("count", "documents").sum())
    found = measure(together, level, reading).drop("count", "documents")
    return part.join(found, on=["descriptor", "word"], how="left", maintain_order="left")


def _complete(observations: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the stages that answer in words, with the columns that only some of these have."""
    rows = observations
    if "stage" in rows.columns:
        rows = rows.filter(pl.col("stage").is_in(STAGES))
    optional = [name for name in ("word", "text", "image") if name not in rows.columns]
    absent = [pl.lit(None, dtype=pl.String).alias(name) for name in optional]
    return rows.with_columns(*absent).with_columns(pl.col("word", "text", "image").cast(pl.String))


class Associations:
    """The associations in the answers of one stage, counted once for all stages that assess them."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._counted: tuple[pl.DataFrame, pl.DataFrame] | None = None
        self._kept: tuple[pl.DataFrame, DoraOptions, pl.DataFrame] | None = None

    def counted(self, earlier: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return `PAIR`, `count` (occurrences) and `documents` (answers it occurs in), in plan order."""
        frame = earlier[self._stage] if self._stage in earlier else pl.DataFrame()
        if self._counted is None or self._counted[0] is not frame:
            self._counted = frame, _count(frame)
        return self._counted[1]

    def salient(self, earlier: Mapping[str, pl.DataFrame], options: DoraOptions) -> pl.DataFrame:
        """Return the rows of `counted` that the method keeps, each setting for itself."""
        counted = self.counted(earlier)
        if self._kept is None or self._kept[0] is not counted or self._kept[1] != options:
            self._kept = counted, options, _salient(counted, options)
        return self._kept[2]


def _count(frame: pl.DataFrame) -> pl.DataFrame:
    counts = ("count", "documents")
    if frame.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(PAIR, pl.String) | dict.fromkeys(counts, pl.Int64))
    return count_pairs(mentions(frame)).select(*PAIR, pl.col(counts).cast(pl.Int64))


def _salient(counted: pl.DataFrame, options: DoraOptions) -> pl.DataFrame:
    if counted.is_empty():
        return counted
    measured = measure_cells(counted, options.salience_level, Reading(keep=options.salience_keep))
    return measured.filter(f"salient_{METHODS[options.salience]}").select(counted.columns)
