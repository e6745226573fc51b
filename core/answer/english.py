"""The line on refusals in other languages than English, in which none is recognised."""

from __future__ import annotations

from ..scoring.score import Scores

OTHER = "Most answers are not in English"
UNKNOWN = "The language of the answers is not known"
LIMIT = "Refusals are recognised in English only, so that some answers may be refusals that were not recognised"


def language_words(scores: Scores) -> str:
    """Return that refusals are recognised in English only, where the answers are not known to be English.

    Args:
        scores: Those of a run.
    """
    if scores.english:
        return ""
    return f"{OTHER if scores.english is False else UNKNOWN}. {LIMIT}."
