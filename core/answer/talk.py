"""How many answers talk about the question rather than the person, and about whom they do so most."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..contracts import Stage
from ..contracts.words import percent
from ..reading.refusals import about_request, formulas_in
from ..scoring.score import Scores
from .lost import FEWEST, TWICE

ALL = "{share} of the {answers:,} answers{where} talk about the question."
GROUP = "{share} of the {answers:,} answers{where} about {level} talk about the question, {other} of the others."


def talk_words(scores: Scores) -> str:
    """Return which share of the answers talks about the question, by whom they are about; empty: fewer than five do.

    An answer talks about the question if it was refused, or if a sentence of a free text (`StageRules.text`) does.

    Args:
        scores: Those of a run.
    """
    stages = [stage for stage in scores.stages if stage.counting.about]
    return " ".join(words for stage in stages for words in _of_stage(scores, stage, several=len(stages) > 1))


def _of_stage(scores: Scores, stage: Stage, *, several: bool) -> Iterator[str]:
    answers = _answers(scores, stage)
    if answers["talks"].sum() < FEWEST:
        return
    where = f" in the stage {stage.name.replace('_', ' ')}" if several else ""
    levels = answers.group_by("level", maintain_order=True).agg(pl.col("talks").sum(), pl.len().alias("asked"))
    level, talks, asked = max(levels.iter_rows(), key=lambda row: (row[1] >= FEWEST, row[1] / row[2], row[2]))
    total, every = int(answers["talks"].sum()), answers.height
    if talks < FEWEST or levels.height < 2 or talks / asked < TWICE * (total - talks) / (every - asked):
        yield ALL.format(share=percent(total / every, 1), answers=every, where=where)
        return
    other = percent((total - talks) / (every - asked), 1)
    yield GROUP.format(share=percent(talks / asked, 1), answers=asked, where=where, level=level, other=other)


def _answers(scores: Scores, stage: Stage) -> pl.DataFrame:
    """Return a row per answer: whom it is about (`level`), and whether it `talks` about the question."""
    schema, factor, text = scores.frames.schema(stage.name), stage.counting.about[0], stage.rules.text
    if factor not in schema or "status" not in schema:
        return pl.DataFrame(schema={"level": pl.String, "talks": pl.Boolean})
    wanted = [factor, "status", *([text] if text in schema else [])]
    rows = scores.lazy(stage.name).select(wanted).collect(engine="streaming")
    texts = rows[text].to_list() if text in schema else [None] * rows.height
    formulas = formulas_in(texts)
    spoken = pl.Series("talks", [bool(words and about_request(words, formulas)) for words in texts], dtype=pl.Boolean)
    return rows.select(pl.col(factor).cast(pl.String).alias("level"), talks=(pl.col("status") == "refused") | spoken)
