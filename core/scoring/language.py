"""Whether the answers in words of a run are English: refusals are recognised by rules in no other language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from ..catalogue.refusal_stage import RefusalStage
from ..contracts import Stage
from ..contracts.canonical import decode_request, decode_response
from ..contracts.records import Generate, Generation
from ..engine.reading import as_read
from ..engine.spilled import Frames
from ..fitness.answers import question_text
from ..reading.language import is_english
from ..store import RunRow, Store
from ..store.reading import used_answers

LOOKED = 40
"""Answers of a stage that are looked at, spread over all."""
FEWEST = 5
"""Answers that show a language, below which the questions are looked at."""


def answers_in_english(store: Store, run: RunRow, stages: Sequence[Stage], frames: Frames) -> bool | None:
    """Return whether most answers in words are English; by the questions where the answers are too short to show it.

    Returns:
        True, also where no refusal is sought in words by rules alone; None where neither shows a language.
    """
    if any(isinstance(stage, RefusalStage) for stage in stages):
        return True
    asked = [stage for stage in stages if stage.operation is Generate and stage.name in frames]
    texts = [pair for stage in asked for pair in _texts(store, run, frames, stage.name)]
    if not texts:
        return True
    of_answers = _most(answer for _, answer in texts)
    return of_answers if of_answers is not None else _most((question for question, _ in texts), 1)


def _most(texts: Iterable[str], fewest: int = FEWEST) -> bool | None:
    shown = [english for text in texts if (english := is_english(text)) is not None]
    return 2 * sum(shown) >= len(shown) if len(shown) >= fewest else None


def _texts(store: Store, run: RunRow, frames: Frames, stage: str) -> Iterator[tuple[str, str]]:
    """Yield questions and answers of a stage."""
    if not frames.height(stage) or "key" not in frames.schema(stage):
        return
    counting = pl.col("status").is_in(("ok", "refused", "unreadable")) & pl.col("key").is_not_null()
    keys = frames.lazy(stage).filter(counting).select("key").collect(engine="streaming")["key"]
    chosen = keys.gather_every(max(1, len(keys) // LOOKED)).to_list()[:LOOKED]
    for _, request, response in store.exchanges(set(used_answers(store, run.id, chosen).values())):
        if isinstance(answer := as_read(decode_response(response)), Generation):
            yield question_text(decode_request(request)), answer.text
