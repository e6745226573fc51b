"""An estimate corrected for the errors of its reader or judge; it stands beside the raw one, in its facts."""

from __future__ import annotations

from typing import Any

import msgspec

from .estimates import Estimate
from .records import Scalar

PREFIX = "corrected"
RAW, CORRECTED = "raw", "corrected"


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """What labels of people, or a known error matrix, make of an estimate."""

    value: float | None = None
    """None: it was not corrected, and `why` says so."""
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    method: str = ""
    labels: int = 0
    """Labels that it rests on; 0 of an error matrix."""
    closer: str = ""
    """`raw` or `corrected`: which has the smaller expected squared error, as far as the labels show."""
    code: str = ""
    """Of the refusal."""
    why: str = ""

    def added_to(self, estimate: Estimate) -> Estimate:
        """Return the estimate with this beside it."""
        fields = msgspec.structs.asdict(self).items()
        own = {f"{PREFIX}_{name}": value for name, value in fields if value is not None and value != ""}
        return estimate.replace(facts=plain_facts(estimate) | own)


def plain_facts(estimate: Estimate) -> dict[str, Scalar]:
    """Return the facts without those of a correction."""
    return {name: value for name, value in estimate.facts.items() if not name.startswith(f"{PREFIX}_")}


def correction_of(estimate: Estimate) -> Correction | None:
    """Return the correction of an estimate; None if none was asked for."""
    own: dict[str, Any] = {
        name: estimate.facts[f"{PREFIX}_{name}"]
        for name in Correction.__struct_fields__
        if f"{PREFIX}_{name}" in estimate.facts
    }
    return Correction(**own) if own else None


def shown(correction: Correction, neutral: float | None) -> bool | None:
    """Return whether the interval of a correction leaves neutral out; None where that cannot be said."""
    if neutral is None or correction.low is None or correction.high is None:
        return None
    return not correction.low <= neutral <= correction.high
