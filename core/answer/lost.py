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
    told = [_told(stage, scores.observations[stage.name], len(scores.stages) > 1) for stage in scores.stages]
    lost = [words for words in told if words]
    total = sum(frame.height for frame in scores.observations.values())
    every = "the one answer" if total == 1 else f"all {total:,} answers"
    return "; ".join(lost) + "." if lost else f"nothing; {every} could be used."


def _told(stage: Stage, frame: pl.DataFrame, several: bool) -> str:
    counts = _counts(frame)
    missing = sum(counts.values())
    if not missing:
        return ""
    kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    where = f" in the stage {stage.name.replace('_', ' ')}" if several else ""
    told = f"{missing:,} of {frame.height:,} answers{where} ({percent(missing / frame.height, 1)}): {kinds}"
    factor, level, lost, asked = _worst(stage, frame)
    if asked and lost / asked >= max(MUCH, TWICE * missing / frame.height):
        told += f"; of {factor.replace('_', ' ')} {level}, {lost:,} of {asked:,}"
    return told


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    lost = frame.filter(pl.col("status") != "ok")
    return dict(lost["status"].value_counts(sort=True).iter_rows())


def _worst(stage: Stage, frame: pl.DataFrame) -> tuple[str, str, int, int]:
    """Return the factor and level with the greatest share of missing answers, how many are, and how many were asked."""
    worst = ("", "", 0, 0)
    lost = (pl.col("status") != "ok").sum().alias("lost")
    for factor in (name for name in stage.count_by if name in frame.columns):
        levels = frame.group_by(factor, maintain_order=True).agg(lost, pl.len().alias("asked"))
        if not 1 < levels.height <= MOST_LEVELS:
            continue
        level, count, asked = max(levels.iter_rows(), key=lambda row: (row[1] / row[2], row[2]))
        if not worst[3] or count / asked > worst[2] / worst[3]:
            worst = (factor, str(level), count, asked)
    return worst


def much(scores: Scores) -> list[Stage]:
    """Return the stages of which much is missing, over all or of one group that is asked about."""

    def lost(stage: Stage) -> bool:
        frame = scores.observations[stage.name]
        _, _, count, asked = _worst(stage, frame)
        every = sum(_counts(frame).values())
        return bool(every) and (every >= MUCH * frame.height or count >= MUCH * asked)

    return [stage for stage in scores.stages if lost(stage)]


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
