"""Refusals: who declines what, by the speech acts of the sentences of an answer. English only.

`classify_refusal` says what an answer does in place of answering, or besides; `declines` whether it is a full refusal.
`docs/refusals.md` has the measured errors, model by model.
"""

from .apart import about_request, behind_refusal, formulas_in, without
from .decide import REFUSES, Act, Refusal, classify_refusal, declines
from .sentences import Span

REFUSAL_READER_VERSION = 4
"""Raised whenever the rules see other texts."""

__all__ = [
    "REFUSAL_READER_VERSION",
    "REFUSES",
    "Act",
    "Refusal",
    "Span",
    "about_request",
    "behind_refusal",
    "classify_refusal",
    "declines",
    "formulas_in",
    "without",
]
