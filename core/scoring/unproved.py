"""The mark of numbers from a run that is not as it was stored."""

from __future__ import annotations

from ..contracts import Estimate
from ..contracts.estimates import Caveat

UNPROVED = "UNPROVED"
"""The mark of numbers of a run that is not as it was stored."""


def unproved(estimate: Estimate) -> Estimate:
    """Return an estimate of a run that is not as it was stored, marked wherever it is shown."""
    if Caveat.UNPROVED in estimate.caveats:
        return estimate
    label = unproved_words(estimate.label or estimate.metric)
    return estimate.replace(label=label, caveats=(*estimate.caveats, Caveat.UNPROVED))


def unproved_words(text: str) -> str:
    """Return a text about numbers of a run that is not as it was stored, with the mark."""
    return f"{UNPROVED}: {text}" if text and not text.startswith(UNPROVED) else text
