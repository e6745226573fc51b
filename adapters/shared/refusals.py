"""The status of an answer by the text rule for refusals."""

from __future__ import annotations

import msgspec

from ...core.contracts.records import Generation
from ...core.reading.refusals import declines


def mark_refusal(answer: Generation, *, rule: bool) -> Generation:
    """Return an answer with its status by the text rule, unless the rule is switched off; its text stays."""
    return msgspec.structs.replace(answer, status="refused") if rule and declines(answer.text) else answer
