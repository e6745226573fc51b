"""The questions of a study: which measure answers each, and what its values mean in plain words."""

from __future__ import annotations

import msgspec

from ..contracts.records import Scalar


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that a study answers, and the measure whose verdict is the answer."""

    asks: str
    """The question, for people who decide."""
    measure: str
    """Name of the measure; of its headline estimates, those with the fewest factors answer."""
    group: dict[str, Scalar] = {}
    """Levels that the estimates have, where the measure is given in several ways."""
    above: str = ""
    """What a value above neutral means, as a clause: `positive traits are chosen more often with the filter`."""
    below: str = ""
    """The same of a value below it."""
    small: float | None = None
    """Distance from neutral, in the unit of the measure, within which a difference counts as small. Without it: 5
    percentage points of a percentage, 0.05 of a share, and of other units none."""
    counts: bool = False
    """Whether the measure counts what is significant after correction, so that any count above 0 is a finding."""
