"""What was missing of a run, why, and what to change: with examples, where much is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from ..contracts import Stage
from ..contracts.estimates import Example
from ..contracts.words import percent
from ..engine.integrity.records import IN_REASONING
from ..fitness import MISPLACED
from ..scoring.score import Scores

MUCH = 0.2
"""Share of missing answers from which on they come first among the examples."""
EACH = 3
"""Examples of each reason, of the most frequent ones."""
REASONS = 3
TWICE = 2.0
"""How many times the share over all a group's share is, from which on it is named."""
FEWEST = 5
"""Missing answers of a group, below which it is not named and its examples do not come first: one of four is chance."""
MOST_LEVELS = 100
"""Levels above which a factor names single questions rather than groups of them."""
MENDS = {
    "unreadable": "Read one of them under Examples in the report. If the answer is empty or cut off, allow more tokens "
    "(max_tokens of the model; one that reasons may have used them up). If it is there in other words, choose another "
    "prompt or reading of the study, or a model that follows instructions.",
    "refused": "The model declines the question. That is a finding about the model, not a fair answer: report it, or "
    "ask another prompt of the study, or score likelihoods instead of answers where the study can.",
    "filtered": "The provider's filter stopped these, not the model: ask an endpoint without it, or report the share.",
    "failed": "These were never answered. Continue the run with `prejudge resume`.",
}
NOT_IN_FILE = (
    "The imported files have no answer to these. If other files have them, import all together: --responses A "
    "--responses B."
)
"""What to do about imported answers that are missing: such a run cannot be resumed."""


class Lost(NamedTuple):
    """What is missing of the answers of a stage."""

    stage: Stage
    answers: int
    """All that there are."""
    counts: dict[str, int]
    """By status, the most frequent first."""
    factor: str
    """The factor of which one level has the greatest share of missing answers; empty: none has levels enough."""
    level: str
    of_level: int
    """Missing answers of that level."""
    asked: int
    """All answers of that level."""

    @property
    def every(self) -> int:
        """Return how many are missing."""
        return sum(self.counts.values())

    @property
    def much(self) -> bool:
        """Return whether much is missing, over all or of one group that is asked about."""
        over = self.every >= MUCH * self.answers
        return bool(self.every) and (over or (self.of_level >= max(FEWEST, MUCH * self.asked)))


def lost_of(scores: Scores) -> list[Lost]:
    """Return what is missing, by stage: one pass over the answers, from which all texts are made."""
    return [_lost(scores, stage) for stage in scores.stages]


def _lost(scores: Scores, stage: Stage) -> Lost:
    """Count what is missing, and find the factor and level with the greatest share of it."""
    frames, every = scores.frames, scores.lazy(stage.name)
    missing = every.select("status").filter(pl.col("status") != "ok").collect(engine="streaming")
    counts = dict(missing["status"].value_counts(sort=True).iter_rows())
    worst = ("", "", 0, 0)
    lost = (pl.col("status") != "ok").sum().alias("lost")
    named = (*stage.counting.by, *stage.counting.about)
    for factor in (name for name in named if counts and name in frames.schema(stage.name)):
        grouped = every.group_by(factor, maintain_order=True).agg(lost, pl.len().alias("asked"))
        levels = grouped.collect(engine="streaming")
        if levels.height < 2 or (levels.height > MOST_LEVELS and factor not in stage.counting.about):
            continue
        level, count, asked = max(levels.iter_rows(), key=lambda row: (row[1] >= FEWEST, row[1] / row[2], row[2]))
        if not worst[3] or count / asked > worst[2] / worst[3]:
            worst = (factor, str(level), count, asked)
    return Lost(stage, scores.height(stage.name), counts, *worst)


def missing_words(found: Sequence[Lost]) -> str:
    """Return how many answers are missing, by stage and status."""
    lost = [words for one in found if (words := _told(one, len(found) > 1))]
    total = sum(one.answers for one in found)
    every = "the one answer" if total == 1 else f"all {total:,} answers"
    return "; ".join(lost) + "." if lost else f"nothing; {every} could be used."


def _told(lost: Lost, several: bool) -> str:
    if not lost.every:
        return ""
    kinds = ", ".join(f"{count:,} {status}" for status, count in lost.counts.items())
    where = f" in the stage {lost.stage.name.replace('_', ' ')}" if several else ""
    share = lost.every / lost.answers
    told = f"{lost.every:,} of {lost.answers:,} answers{where} ({percent(share, 1)}): {kinds}"
    many = lost.of_level >= FEWEST or share >= MUCH
    if lost.asked and many and lost.of_level / lost.asked >= max(MUCH, TWICE * share):
        told += f"; of {lost.factor.replace('_', ' ')} {lost.level}, {lost.of_level:,} of {lost.asked:,}"
    return told


def mend_words(found: Sequence[Lost], imported: bool = False) -> str:
    """Return what to change, where much is missing: by the most frequent kind of it."""
    kinds: dict[str, int] = {}
    for lost in found:
        for status, count in lost.counts.items() if lost.much else ():
            kinds[status] = kinds.get(status, 0) + count
    most = max(kinds, key=lambda status: kinds[status], default="")
    return _mend(most, imported)


def misplaced_words(scores: Scores, found: Sequence[Lost]) -> str:
    """Return which setting to change, where most unreadable answers stand in the reasoning field; else nothing."""
    unreadable = sum(lost.counts.get("unreadable", 0) for lost in found if lost.much)
    findings = (finding for stage in scores.manifest.integrity.values() for finding in stage.findings)
    misplaced = sum(finding.count for finding in findings if finding.name == IN_REASONING)
    return MISPLACED if unreadable and 2 * misplaced > unreadable else ""


def _mend(status: str, imported: bool) -> str:
    return NOT_IN_FILE if imported and status == "failed" else MENDS.get(status, "")


def lost_examples(scores: Scores) -> Iterator[Example]:
    """Yield answers that are missing, of the stages of which many are: a few of each of the most frequent reasons."""
    for name in (one.stage.name for one in lost_of(scores) if one.much):
        if "key" not in scores.frames.schema(name):
            continue
        missing = (pl.col("status") != "ok") & pl.col("key").is_not_null()
        lost = scores.lazy(name).select("status", "reason", "key").filter(missing).collect(engine="streaming")
        reasons = lost.group_by("status", "reason").len().sort("len", "status", descending=[True, False])
        for status, reason, count in reasons.head(REASONS).iter_rows():
            own = lost.filter(pl.col("status") == status, pl.col("reason").eq_missing(reason))
            for key in own["key"].unique(maintain_order=True).head(EACH):
                yield Example(
                    title=f"{status.capitalize()}{f': {reason}' if reason else ''} ({count:,} answers)",
                    group={},
                    keys=(key,),
                    caption=_mend(status, scores.is_imported),
                )
