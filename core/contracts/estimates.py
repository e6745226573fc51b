"""What a metric states: a tidy row with its uncertainty, a chart, an example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .records import Scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MISSING, POSITION = "missing", "position"
TOPICS = (MISSING, POSITION)
"""Whether answers are missing, and what the place of an option does: neither is bias, and both may pass for it."""
_TOPIC_OF = {"missing": MISSING, "position_bias": POSITION}


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """One number, the group it is for, and how sure it is. What is undefined is None, never 0."""

    metric: str
    """Name of the measure, such as `z2` or `favouritism`."""
    group: dict[str, Scalar]
    """The cell it is for, such as `{"axis": "height", "gender": "women"}`; empty for the whole study."""
    value: float | None
    neutral: float | None = None
    """What an unbiased model would give; None where no single value is neutral."""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    """Ends of the interval at `level`."""
    level: float = 0.95
    interval: str = ""
    """How the interval was made, such as `cluster bootstrap (template)`."""
    n: int = 0
    """Units the value rests on."""
    clusters: int | None = None
    missing: dict[str, int] = {}
    """Units left out, by status."""
    bound_low: float | None = None
    bound_high: float | None = None
    """Worst-case (Manski) range over every possible answer of the missing units."""
    test: str = ""
    statistic: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    """p corrected within `family`."""
    family: str = ""
    correction: str = ""
    effect: float | None = None
    effect_name: str = ""
    effect_low: float | None = None
    effect_high: float | None = None
    note: str = ""
    topic: str = ""
    """What it is about, if not the study's question: one of `TOPICS`; it then has a section of its own in a report."""

    @property
    def subject(self) -> str:
        """Return the topic; a metric named `missing` or `position_bias` needs not name it."""
        return self.topic or _TOPIC_OF.get(self.metric, "")


class Chart(msgspec.Struct, frozen=True):
    """A figure with what a reader who cannot see it needs."""

    name: str
    title: str
    caption: str
    figure: Figure


class Example(msgspec.Struct, frozen=True):
    """Exchanges that show what lies behind a number."""

    title: str
    group: dict[str, Scalar]
    keys: tuple[bytes, ...]
    """Keys of the exchanges, as in the observations."""
    value: float | None = None
    caption: str = ""
