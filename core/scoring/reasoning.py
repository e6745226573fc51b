"""How many answers of a run came with reasoning, and whether its model heeded how much it was told to think."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import polars as pl

from ..catalogue.study import SUBJECT
from ..catalogue.variants import THINKING, settings_in, split_name
from ..contracts import Stage
from ..contracts.errors import PrejudgeError
from ..contracts.records import Generate
from ..engine.observations import reasoning_in
from ..engine.reading import read_part
from ..store import Store, stream_trials

_TOKENS = r'"reasoning_tokens":(\d+)'


class Reasoned(msgspec.Struct, frozen=True):
    """The reasoning in the subject's answers of a run."""

    answers: int
    reasoned: int
    """Answers with reasoning: its text, or a count of its tokens."""
    tokens: float | None
    """Mean number of tokens of reasoning, over the answers that tell it or have none; None if no such answer."""
    level: str | None = None
    """How much the model was told to think; None: nothing."""

    @property
    def ignored(self) -> bool:
        """Return whether the answers show that the model did not heed it."""
        if self.level is None or not self.answers:
            return False
        return self.reasoned > 0 if self.level == "off" else self.reasoned == 0

    def words(self) -> str:
        """Return it as text."""
        tokens = "" if self.tokens is None or not self.reasoned else f", {self.tokens:,.0f} tokens of it on average"
        return f"{self.reasoned:,} of {self.answers:,} answers with reasoning{tokens}"


def reasoned(store: Store, run_id: int, stages: Iterable[Stage], model: str) -> Reasoned | None:
    """Return the reasoning in a run's answers of the subject; None if it gave none in words."""
    counts = pl.DataFrame({"text": [], "tokens": []}, schema={"text": pl.Boolean, "tokens": pl.Int64})
    for stage in stages:
        if stage.role == SUBJECT and stage.operation is Generate:
            parts = [
                _counted(read_part(part)["response"].drop_nulls()) for part in stream_trials(store, run_id, stage.name)
            ]
            counts = pl.concat([counts, *parts])
    if counts.is_empty():
        return None
    told = counts.filter(pl.col("tokens").is_not_null() | ~pl.col("text"))["tokens"].fill_null(0)
    mean = told.mean()
    return Reasoned(
        answers=counts.height,
        reasoned=int((counts["text"] | counts["tokens"].is_not_null()).sum()),
        tokens=float(mean) if isinstance(mean, int | float) else None,
        level=level_of(model),
    )


def level_of(model: str) -> str | None:
    """Return how much a variant of a model is told to think, by its name; None if that does not say."""
    try:
        own = settings_in(text) if (text := split_name(model)[1]) else {}
    except PrejudgeError:
        return None
    return str(own[THINKING]) if THINKING in own else None


def _counted(responses: pl.Series) -> pl.DataFrame:
    # The canonical encoding leaves out what is 0, and escapes quotes within texts.
    return pl.DataFrame(
        {
            "text": reasoning_in(responses).is_not_null(),
            "tokens": responses.str.extract(_TOKENS).cast(pl.Int64),
        }
    )
