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
TWICE = 2.0
"""How many times the share over all a group's share is, from which on it is named."""
MOST_LEVELS = 100
"""Levels above which a factor names single questions rather than groups of them."""
MENDS = {
    "unreadable": "Read an example below. If the answer is empty or cut off, allow more tokens (max_tokens of the "
    "model; one that reasons may have used them up). If it is there in other words, choose another prompt or reading "
    "of the study, or a model that follows instructions.",
    "refused": "The model declines the question. That is a finding about the model, not a fair answer: report it, or "
    "ask another prompt of the study, or score likelihoods instead of answers where the study can.",
    "filtered": "The provider's filter stopped these, not the model: ask an endpoint without it, or report the share.",
    "failed": "These were never answered. Continue the run with `prejudge resume`.",
}


def missing_words(scores: Scores) -> str:
    """Return how many answers are missing, by stage and status."""
    told = [_told(scores, stage) for stage in scores.stages]
    lost = [words for words in told if words]
    total = sum(map(scores.height, scores.observations))
    every = "the one answer" if total == 1 else f"all {total:,} answers"
    return "; ".join(lost) + "." if lost else f"nothing; {every} could be used."


def _told(scores: Scores, stage: Stage) -> str:
    counts, every = _counts(scores, stage), scores.height(stage.name)
    missing = sum(counts.values())
    if not missing:
        return ""
    kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    where = f" in the stage {stage.name.replace('_', ' ')}" if len(scores.stages) > 1 else ""
    told = f"{missing:,} of {every:,} answers{where} ({percent(missing / every, 1)}): {kinds}"
    factor, level, lost, asked = _worst(scores, stage)
    if asked and lost / asked >= max(MUCH, TWICE * missing / every):
        told += f"; of {factor.replace('_', ' ')} {level}, {lost:,} of {asked:,}"
    return told


def _counts(scores: Scores, stage: Stage) -> dict[str, int]:
    lost = scores.lazy(stage.name).select("status").filter(pl.col("status") != "ok").collect(engine="streaming")
    return dict(lost["status"].value_counts(sort=True).iter_rows())


def _worst(scores: Scores, stage: Stage) -> tuple[str, str, int, int]:
    """Return the factor and level with the greatest share of missing answers, how many are, and how many were asked."""
    worst, frames = ("", "", 0, 0), scores.frames
    lost = (pl.col("status") != "ok").sum().alias("lost")
    for factor in (name for name in stage.count_by if name in frames.schema(stage.name)):
        grouped = frames.lazy(stage.name).group_by(factor, maintain_order=True).agg(lost, pl.len().alias("asked"))
        levels = grouped.collect(engine="streaming")
        if not 1 < levels.height <= MOST_LEVELS:
            continue
        level, count, asked = max(levels.iter_rows(), key=lambda row: (row[1] / row[2], row[2]))
        if not worst[3] or count / asked > worst[2] / worst[3]:
            worst = (factor, str(level), count, asked)
    return worst


def much(scores: Scores) -> list[Stage]:
    """Return the stages of which much is missing, over all or of one group that is asked about."""

    def lost(stage: Stage) -> bool:
        _, _, count, asked = _worst(scores, stage)
        every = sum(_counts(scores, stage).values())
        return bool(every) and (every >= MUCH * scores.height(stage.name) or count >= MUCH * asked)

    return [stage for stage in scores.stages if lost(stage)]


def mend_words(scores: Scores) -> str:
    """Return what to change, where much is missing: by the most frequent kind of it."""
    kinds: dict[str, int] = {}
    for stage in much(scores):
        for status, count in _counts(scores, stage).items():
            kinds[status] = kinds.get(status, 0) + count
    most = max(kinds, key=lambda status: kinds[status], default="")
    return MENDS.get(most, "")


def lost_examples(scores: Scores) -> Iterator[Example]:
    """Yield answers that are missing, of the stages of which many are: a few of each of the most frequent reasons."""
    for stage in much(scores):
        if "key" not in scores.frames.schema(stage.name):
            continue
        missing = (pl.col("status") != "ok") & pl.col("key").is_not_null()
        lost = scores.lazy(stage.name).select("status", "reason", "key").filter(missing).collect(engine="streaming")
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
