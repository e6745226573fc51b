"""Questions that a study without code asks of its measures, and the names of measures that state none."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

OUTCOME, LABEL = "outcome", "label"
"""Columns of observations of such a study: the number of an answer, and what was answered."""


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Up to which distance from neutral a difference does not matter, in the unit of the measure, and why."""

    value: float
    because: str = ""


class DeclaredQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that a study answers by a measure.

    Example:
        >>> from prejudge.core.contracts.declared import DeclaredQuestion, Limit
        >>> question = DeclaredQuestion("Are men rated higher?", "difference_gender", limit=Limit(0.3, "half a grade"))
        >>> question.entry["side"], question.entry["limit"]
        ('above', 0.3)
    """

    asks: str
    measure: str
    """Its name."""
    yes: Literal["above", "below", "either"] = "above"
    """On which side of neutral the answer is yes."""
    limit: Limit | None = None
    above: str = ""
    """What a value above neutral means, as a clause."""
    below: str = ""

    @property
    def entry(self) -> dict[str, Any]:
        """Return the question as a study has it."""
        fields = {"asks": self.asks, "measure": self.measure, "side": self.yes, "above": self.above}
        fields["below"] = self.below
        if self.limit is None:
            return fields
        return fields | {"limit": self.limit.value, "limit_reason": self.limit.because}


def measure_name(kind: str, of: object) -> str:
    """Return the name of a measure that states none: its kind, and the factor or the column that it is of."""
    suffix = re.sub(r"[^a-z0-9]+", "_", of.lower()).strip("_") if isinstance(of, str) and of != OUTCOME else ""
    return "_".join(filter(None, [kind, suffix]))
