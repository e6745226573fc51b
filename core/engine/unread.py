"""The texts of answers that could not be read, for a model that decides whether they decline."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ..catalogue.refusal_stage import UNREAD_TEXT, RefusalStage
from ..contracts import Stage
from ..contracts.canonical import decode_response
from ..contracts.records import Generation
from ..store import Store, used_answers
from .reading import as_read


def with_unread(
    store: Store, run_id: int, stage: Stage, frames: Mapping[str, pl.DataFrame]
) -> Mapping[str, pl.DataFrame]:
    """Return observations with what a stage needs of answers: of refusals, the texts of those that were not read.

    Args:
        store: with the answers.
        run_id: the run that used them.
        stage: the one that is asked next.
        frames: observations of earlier stages, by name.
    """
    if not isinstance(stage, RefusalStage):
        return frames
    return dict(frames) | {name: _texts(store, run_id, frames[name]) for name in stage.of_unread if name in frames}


def _texts(store: Store, run_id: int, frame: pl.DataFrame) -> pl.DataFrame:
    keys = frame.filter(pl.col("status") == "unreadable", pl.col("key").is_not_null())["key"].unique().to_list()
    numbers = used_answers(store, run_id, keys)
    texts = {
        number: answer.text
        for number, _, response in store.exchanges(set(numbers.values()))
        if isinstance(answer := as_read(decode_response(response)), Generation)
    }
    column = [texts.get(numbers.get(key, -1)) for key in frame["key"]]
    return frame.with_columns(pl.Series(UNREAD_TEXT, column, dtype=pl.String))
