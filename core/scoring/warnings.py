"""Warnings of a run: unfinished, other options, unanswered trials."""

from __future__ import annotations

import polars as pl

from ..engine.manifest import in_words
from .score import Scores

AGAIN = "Scored again with {options}: the numbers may differ from those with the run's own options."
INCOMPLETE = "This run is not complete: {done} of {planned} trials of stage {stage!r} are recorded. {mend}"


def warnings_of(scores: Scores, place: str = "") -> list[str]:
    """Return the warnings that a reader needs with the numbers; `place` has a command's options to find the store."""
    remeasured = scores.manifest.remeasured
    again = [AGAIN.format(options=in_words(remeasured))] if remeasured else []
    warnings = [*again, *scores.manifest.notes, *_unanswered(scores)]
    if scores.run.state == "imported":
        return warnings
    for stage in scores.stages:
        done, record = scores.observations[stage.name].height, scores.manifest.stages.get(stage.name)
        if scores.run.state != "finished" or record is None or done < record.planned:
            planned = f"{record.planned}" if record else "an unknown number of"
            mend = f"Resume it: prejudge resume {scores.run.name}{place}"
            warnings.append(INCOMPLETE.format(done=done, planned=planned, stage=stage.name, mend=mend))
    return warnings


def _unanswered(scores: Scores) -> list[str]:
    """Describe the trials that the model never answered: number, shares, the most frequent reason."""
    warnings = []
    for name, frame in scores.observations.items():
        failed = frame.filter(pl.col("status") == "failed")
        if failed.height:
            reason, count = failed["reason"].fill_null("no reason recorded").value_counts(sort=True).row(0)
            shares = f"{failed.height} of {frame.height} trials of stage {name!r} were not answered"
            warnings.append(f"{shares}; most often ({count} times): {reason}")
    return warnings
