"""From answers in words to associations: words by descriptor, setting and number of occurrences. Pure.

Three stages have answers in words: `completions` (one `word` each), `descriptions` and `impressions` (a `text` about an
image). The other stages assess the associations found in these.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import polars as pl

from ...core.contracts.errors import DataError
from ...core.reading.refusals import about_request, formulas_in, without
from .content_words import content_forms, lemmas
from .options import DoraOptions
from .salience import LEAST_FIRST, METHODS, STRENGTH, Asked, Reading, measure, tested_over_prompts
from .terms import ABSENT, CELL, PAIR, PLACE, STAGES, UNKNOWN
from .wordings import FAMILIES

WORDING, STRATUM = "wording", "stratum"


class Counts(msgspec.Struct, frozen=True):
    """What was said, in how many answers, and how many answers there are."""

    pairs: pl.DataFrame
    """`PAIR`, `said` (the commonest form of the word), `count` (its mentions), `documents` (answers with it),
    `keys` of some answers."""
    answers: pl.DataFrame
    """`CELL`, and what `salience.Asked` has."""
    hits: pl.DataFrame

    def descriptors(self, cell: Mapping[str, str]) -> frozenset[str]:
        """Return the descriptors that were asked about, with a readable answer, in these cells."""
        return frozenset(self.answers.filter(**cell)["descriptor"].to_list())

    def within(self, cell: Mapping[str, str]) -> Asked:
        """Return the answers of one modality and setting."""
        return Asked(self.answers.filter(**cell), self.hits.filter(**cell))


def mentions(observations: pl.DataFrame) -> pl.DataFrame:
    """Return a row per mention of a word: `PAIR`, `said`, `wording`, `stratum`, `document`, `key`.

    Completions are lemmas; texts are split into lemmas of their content words; `said` is the word as it was
    written, in lower case. Sentences about the question are left out of texts. What could not be read says nothing
    and is left out; a text without content words has a row without a word. `document` numbers the answers that are
    independent of each other: all texts about one image in one setting are one document. `stratum` is the letter of
    a completion, empty elsewhere; `wording` is that of the prompt, or the block of wordings of drawing and question
    that are crossed, and empty where there is none.

    Args:
        observations: Those of one stage, or of several stacked with a column `stage`.

    Raises:
        DataError: a column is absent.
    """
    if lacking := [name for name in (*PLACE, "status", "key") if name not in observations.columns]:
        raise DataError(
            f"the observations have no column {', '.join(lacking)}, so they have no associations.",
            code="data.column-missing",
        )
    rows = _complete(observations).filter((pl.col("status") == "ok") & pl.col("descriptor").is_not_null())
    document = pl.struct("modality", "setting", "descriptor", pl.coalesce("image", pl.col("key").bin.encode("hex")))
    rows = rows.with_columns(document=document.rank("dense"))
    words = rows.filter(pl.col("word").is_not_null())
    texts = rows.filter(pl.col("word").is_null() & pl.col("text").is_not_null())
    # What is said about the question is said about nobody.
    answers = texts["text"].to_list()
    formulas = formulas_in(answers)
    found = content_forms([without(text, about_request(text, formulas)) for text in answers])
    columns = [
        pl.Series(name, [[pair[place] for pair in one] for one in found], dtype=pl.List(pl.String))
        for place, name in enumerate(("word", "said"))
    ]
    said = pl.concat(
        [
            words.with_columns(
                pl.Series("word", lemmas(words["word"].to_list()), dtype=pl.String),
                said=pl.col("word").str.strip_chars().str.to_lowercase(),
            ),
            texts.with_columns(columns).explode("word", "said"),
        ],
        how="diagonal",
    )
    return said.select(*PAIR, "said", WORDING, STRATUM, "document", "image", "text", "key")


def count(observations: pl.DataFrame) -> Counts:
    """Count what was said in answers in words; raises `DataError` where a column is absent."""
    rows = mentions(observations)
    prompt = [*CELL, "descriptor", WORDING, STRATUM]
    # Equal answers to one prompt are as good as one: nothing shows that the model was asked more than once.
    answer = pl.coalesce("image", "text", "word")
    size = pl.col("document").n_unique()
    asked = rows.group_by(prompt, maintain_order=True).agg(
        answers=size, distinct=pl.when(answer.n_unique() > 1).then(size).otherwise(1)
    )
    said = rows.filter(pl.col("word").is_not_null() & (pl.col("word") != ""))
    hits = said.group_by(*prompt, "word", maintain_order=True).agg(answers=size)
    same = asked.select(*prompt, once=pl.col("distinct") < pl.col("answers"))
    hits = hits.join(same, on=prompt, how="left", maintain_order="left").select(
        *prompt, "word", "answers", distinct=pl.when("once").then(1).otherwise(pl.col("answers"))
    )
    return Counts(_pairs(said), asked, hits)


def _pairs(said: pl.DataFrame) -> pl.DataFrame:
    forms = said.group_by(*PAIR, "said", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    commonest = forms.unique(PAIR, keep="first", maintain_order=True).drop("len")
    found = said.group_by(PAIR, maintain_order=True).agg(
        count=pl.len().cast(pl.Int64),
        documents=pl.col("document").n_unique().cast(pl.Int64),
        keys=pl.col("key").unique(maintain_order=True).head(3),
    )
    return found.join(commonest, on=PAIR, how="left", maintain_order="left").select(
        *PAIR, "said", "count", "documents", "keys"
    )


def measure_cells(counts: Counts, level: float = 0.05, reading: Reading | None = None) -> pl.DataFrame:
    """Return every pair with what each method says of it (`salience.measure`), by modality and setting.

    A descriptor that stands in two dimensions is one descriptor: what was said of it is measured together, and the
    row of each dimension has the result, with its own `count` and `documents`. Where settings have several wordings,
    `exact` tests all prompts of a modality together, and keeps a pair in the settings in which it was said more often
    than expected. `found_in` says in how many settings `exact` keeps it, and `asked_in` in how many the descriptor was
    asked about.
    """
    parts = [
        _measured(part, counts.within(dict(zip(CELL, map(str, cell), strict=True))), level, reading)
        for cell, part in counts.pairs.group_by(*CELL, maintain_order=True)
    ]
    if not parts:
        parts = [_measured(counts.pairs, counts.within({}), level, reading)]
    modalities = pl.concat(parts).partition_by("modality", maintain_order=True)
    pairs = pl.concat([_together(part, counts, level, reading or Reading()) for part in modalities] or parts)
    number = pl.col("setting").n_unique().cast(pl.Int64)
    asked = counts.answers.group_by("modality", "descriptor").agg(asked_in=number)
    found = pairs.filter("salient_exact").group_by("modality", "descriptor", "word").agg(found_in=number)
    pairs = pairs.join(asked, on=["modality", "descriptor"], how="left", maintain_order="left")
    pairs = pairs.join(found, on=["modality", "descriptor", "word"], how="left", maintain_order="left")
    return pairs.with_columns(pl.col("found_in").fill_null(0))


def _together(pairs: pl.DataFrame, counts: Counts, level: float, reading: Reading) -> pl.DataFrame:
    """Return the pairs of a modality with the exact test over the prompts of all its settings."""
    if pairs["setting"].n_unique() < 2 or (pairs["wordings"] < 2).any():
        return pairs
    modality = pairs["modality"][0]
    # What a sentence calls for is common to all settings that have its wording, and what an image shows to all
    # questions about it.
    family = [pl.col("setting").replace(FAMILIES)] if modality == "t2t" else []
    prompt = pl.concat_str(*family, WORDING, STRATUM, separator="/").alias("prompt")
    hits, answers = (
        frame.filter(modality=modality).group_by(*by, prompt).agg(pl.col("answers").sum())
        for frame, by in ((counts.hits, ["descriptor", "word"]), (counts.answers, ["descriptor"]))
    )
    hits, answers = hits.rename({"answers": "hits"}), answers.select("descriptor", "prompt", "answers")
    found = tested_over_prompts(hits, answers, reading, level)
    joined = pairs.drop("p_exact", "q_exact", "prompts").join(
        found, on=["descriptor", "word"], how="left", maintain_order="left"
    )
    kept = (pl.col("q_exact") <= level) & (pl.col("together") > pl.col("expected"))
    return joined.with_columns(pl.col("prompts").cast(pl.Int64), salient_exact=kept).select(pairs.columns)


def _measured(part: pl.DataFrame, asked: Asked, level: float, reading: Reading | None) -> pl.DataFrame:
    together = part.group_by("descriptor", "word", maintain_order=True).agg(pl.col("count").sum())
    found = measure(together, level, reading, asked).drop("count")
    return part.join(found, on=["descriptor", "word"], how="left", maintain_order="left")


def with_answers(pairs: pl.DataFrame, observations: pl.DataFrame) -> pl.DataFrame:
    """Add the assessments of each pair.

    `sentiment` and `toxicity` are labels in lower case, null if unreadable; `sentiment_status` and `toxicity_status`
    have the reason (`absent`: not asked). `level` is the mean of `judgements` readable judgements.
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
    label = pl.col("label").str.to_lowercase()
    # A word that the lexicon does not have is missing, with its own reason: nothing is known of it.
    told = (pl.col("status") == "ok") & (label != UNKNOWN)
    status = pl.when(label == UNKNOWN).then(pl.lit(UNKNOWN)).otherwise("status")
    known = rows.select(*PAIR, pl.when(told).then(label).alias(stage), status.alias(f"{stage}_status"))
    joined = pairs.join(known, on=PAIR, how="left", maintain_order="left")
    return joined.with_columns(pl.col(f"{stage}_status").fill_null(ABSENT))


def ranked(pairs: pl.DataFrame, method: str) -> pl.DataFrame:
    """Return associations strongest first, by a method's score or, for `all`, by the number of mentions."""
    column = STRENGTH.get(method, "count")
    return pairs.sort([column, "count", *PAIR], descending=[method not in LEAST_FIRST, True, *[False] * len(PAIR)])


def _complete(observations: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the stages with answers in words, with all their columns."""
    rows = observations
    if "stage" in rows.columns:
        rows = rows.filter(pl.col("stage").is_in(STAGES))
    optional = ("word", "text", "image", "letter", WORDING, "block")
    absent = [pl.lit(None).alias(name) for name in optional if name not in rows.columns]
    texts = pl.col("word", "text", "image").cast(pl.String)
    letter = pl.col("letter").cast(pl.String).fill_null("").alias(STRATUM)
    wording = pl.coalesce(pl.col("block", WORDING).cast(pl.String), pl.lit("")).alias(WORDING)
    return rows.with_columns(*absent).with_columns(texts, letter, wording)


class Associations:
    """The associations in the answers of one stage, counted once for all assessment stages."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._counted: tuple[pl.DataFrame, Counts] | None = None
        self._kept: tuple[Counts, DoraOptions, pl.DataFrame] | None = None

    def counted(self, earlier: Mapping[str, pl.DataFrame]) -> Counts:
        """Return what was said, in plan order."""
        frame = earlier[self._stage] if self._stage in earlier else pl.DataFrame()
        if self._counted is None or self._counted[0] is not frame:
            self._counted = frame, count(frame if frame.height else _NOTHING)
        return self._counted[1]

    def salient(self, earlier: Mapping[str, pl.DataFrame], options: DoraOptions) -> pl.DataFrame:
        """Return the pairs that the method keeps, each setting for itself."""
        counted = self.counted(earlier)
        if self._kept is None or self._kept[0] is not counted or self._kept[1] != options:
            reading = Reading(keep=options.salience_keep, correction=options.salience_correction)
            measured = measure_cells(counted, options.salience_level, reading)
            self._kept = counted, options, measured.filter(f"salient_{METHODS[options.salience]}")
        return self._kept[2]


_NOTHING = pl.DataFrame(schema=dict.fromkeys((*PLACE, "status"), pl.String) | {"key": pl.Binary})
