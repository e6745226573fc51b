"""What was missing of a run, why, and what to change: with examples, where much is missing."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..contracts import Stage
from ..contracts.estimates import Example
from ..contracts.words import percent
from ..scoring.score import Scores

MUCH = 0.2
"""Share of missing answers from which on they come first among the examples."""
EACH = 3
"""Examples of each reason, of the most frequent ones."""
REASONS = 3
MENDS = {
    "unreadable": "Read an example below. If the answer is there in other words, choose another prompt or reading of "
    "the study, or a model that follows instructions; if it is cut off, allow more tokens (max_tokens of the model).",
    "refused": "The model declines the question. That is a finding about the model, not a fair answer: report it, or "
    "ask another prompt of the study, or score likelihoods instead of answers where the study can.",
    "filtered": "The provider's filter stopped these, not the model: ask an endpoint without it, or report the share.",
    "failed": "These were never answered. Continue the run with `prejudge resume`.",
    "empty": "The model said nothing: allow more tokens (a model that reasons may have used them up), and try the "
    "request with `prejudge doctor`.",
}
ANSWER_STATUSES = ("refused", "filtered", "unreadable", "failed", "empty")


def missing_words(scores: Scores) -> str:
    """Return how many answers are missing, by stage and status."""
    told = [_told(stage, scores.observations[stage.name], len(scores.stages) > 1) for stage in scores.stages]
    lost = [words for words in told if words]
    total = sum(frame.height for frame in scores.observations.values())
    return "; ".join(lost) + "." if lost else f"nothing; all {total:,} answers could be used."


def _told(stage: Stage, frame: pl.DataFrame, several: bool) -> str:
    counts = _counts(frame)
    missing = sum(counts.values())
    if not missing:
        return ""
    kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    where = f" in the stage {stage.name.replace('_', ' ')}" if several else ""
    return f"{missing:,} of {frame.height:,} answers{where} ({percent(missing / frame.height, 1)}): {kinds}"


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    lost = frame.filter(pl.col("status") != "ok")
    return dict(lost["status"].value_counts(sort=True).iter_rows())


def much(scores: Scores) -> list[Stage]:
    """Return the stages of which much is missing."""
    found = ((stage, scores.observations[stage.name]) for stage in scores.stages)
    return [stage for stage, frame in found if frame.height and sum(_counts(frame).values()) >= MUCH * frame.height]


def mend_words(scores: Scores) -> str:
    """Return what to change, where much is missing: by the most frequent kind of it."""
    kinds: dict[str, int] = {}
    for stage in much(scores):
        for status, count in _counts(scores.observations[stage.name]).items():
            kinds[status] = kinds.get(status, 0) + count
    most = max(kinds, key=lambda status: kinds[status], default="")
    return MENDS.get(most, "")


def lost_examples(scores: Scores) -> Iterator[Example]:
    """Yield answers that are missing, of the stages of which many are: a few of each of the most frequent reasons."""
    for stage in much(scores):
        frame = scores.observations[stage.name]
        if "key" not in frame.columns:
            continue
        lost = frame.filter((pl.col("status") != "ok") & pl.col("key").is_not_null())
        reasons = lost.group_by("status", "reason").len().sort("len", "status", descending=[True, False])
        for status, reason, count in reasons.head(REASONS).iter_rows():
            own = lost.filter(pl.col("status") == status, pl.col("reason").eq_missing(reason))
            for key in own["key"].unique(maintain_order=True).head(EACH):
                yield Example(
                    title=f"{status.capitalize()}{f': {reason}' if reason else ''} ({count:,} answers)",
                    group={},
                    keys=(key,),
                    caption=MENDS.get(status, ""),
                )
