"""What the first screen of a report holds. Every text is plain: the pages escape it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..contracts.estimates import Estimate
from ..contracts.words import OF, UNDEFINED, decimals_for, defined, exact, number, percent, share_of

SURE = "This does not show that there is none."
"""What stands beside every verdict that nothing was shown."""
POINTS, SHARE, COUNT = "percentage points", "share", "count"


class State(StrEnum):
    """The verdict on a question."""

    SHOWN = "shown"
    """At least one number differs significantly from neutral, after correction."""
    SMALL = "small"
    """The same, but every such difference lies within the size that counts as small, with its whole interval."""
    OPEN = "open"
    """Nothing differs significantly, and a difference that matters cannot be excluded."""
    NEAR = "near"
    """Every number lies within the size that counts as small, with its whole interval."""
    GIVEN = "given"
    """Numbers without a neutral value: there is nothing to judge."""
    NOTHING = "nothing"
    """There is no number, as no answer could be used."""


WORDS = {
    State.SHOWN: "Shown",
    State.SMALL: "Shown, but small",
    State.OPEN: "Not shown: too little data",
    State.NEAR: "Near neutral",
    State.GIVEN: "Measured, not judged",
    State.NOTHING: "Nothing can be said",
}
ROW_WORDS = WORDS | {State.OPEN: "Not shown", State.GIVEN: "\N{EM DASH}"}
"""The same in a table, below which `NOT_SHOWN` stands."""
NOT_SHOWN = "Not shown: the data are too few to tell. " + SURE
MEANINGS = {
    State.SHOWN: "The difference is statistically significant after correction for the number of tests.",
    State.SMALL: "The difference is statistically significant, but so small that its whole interval lies within the "
    "size that counts as small.",
    State.OPEN: "The numbers are compatible with no difference and with one that matters. " + SURE,
    State.NEAR: "The whole interval lies within the size that counts as small: a larger difference can be excluded, "
    "for what was asked.",
    State.GIVEN: "The measure has no neutral value, so there is nothing to judge.",
    State.NOTHING: "No answer could be used for this question. " + SURE,
}
DEFINITIONS = {
    "interval": "The values that the data are compatible with. Of 100 such 95 % intervals about 95 contain the true "
    "value, where their assumptions hold.",
    "unbiased": "The value that a model without this bias would have (neutral).",
    POINTS: "A difference of two percentages: 60 % is 10 percentage points more than 50 %.",
    "missing": "Questions without a usable answer: refused, filtered, unreadable, or not answered. They are left out "
    "of the numbers, and never count as zero.",
}


class Number(msgspec.Struct, frozen=True):
    """A value with its interval, as a decision maker reads it: a difference of shares in percentage points."""

    value: float | None
    low: float | None
    high: float | None
    neutral: float | None
    unit: str
    level: float
    whole: bool
    """Whether it is a count."""
    hits: str = ""
    """A share by its counts, such as `3 of 41`."""

    @classmethod
    def of(cls, e: Estimate) -> Number:
        """Return the number of an estimate."""
        factor, unit = (100.0, POINTS if e.neutral == 0 else "%") if e.unit == SHARE else (1.0, e.unit)
        value, low, high, neutral = (
            None if end is None or not defined(end) else factor * end for end in (e.value, e.low, e.high, e.neutral)
        )
        whole = value is not None and low is None and neutral is None and value.is_integer() and unit[:1] != "%"
        hits = share_of(e) if neutral is None and OF in e.facts else ""
        return cls(value, low, high, neutral, "" if unit == COUNT else unit, e.interval.level, whole, hits)

    @property
    def decimals(self) -> int:
        """Return the decimals of value and interval."""
        return (
            0
            if self.whole
            else 1
            if self.unit[:1] == "%" or self.unit == POINTS
            else decimals_for([self.value, self.low, self.high])
        )

    @property
    def short(self) -> str:
        """Return the value with its unit, such as `66.7 percentage points`."""
        return self.hits or f"{number(self.value, self.decimals)} {self.unit}".rstrip()

    @property
    def bare(self) -> str:
        """Return the value without its unit."""
        return self.hits or number(self.value, self.decimals)

    @property
    def spread(self) -> str:
        """Return the interval, or a dash."""
        if self.low is None or self.high is None:
            return UNDEFINED
        return f"{number(self.low, self.decimals)} to {number(self.high, self.decimals)}"

    @property
    def expected(self) -> str:
        """Return what an unbiased model would have, or a dash."""
        return exact(self.neutral)

    @property
    def told(self) -> str:
        """Return everything, such as `66.7 percentage points (95 % interval 36.1 to 97.3; unbiased: 0)`."""
        parts = [f"{percent(self.level)} interval {self.spread}" if self.low is not None else ""]
        parts += [f"unbiased: {self.expected}" if self.neutral is not None else ""]
        inside = "; ".join(filter(None, parts))
        return f"{self.short} ({inside})" if inside else self.short


class Row(msgspec.Struct, frozen=True):
    """One number of the first screen."""

    label: str
    meaning: str
    about: str
    """Whom or what it is about; empty for all."""
    number: Number
    state: State
    estimate: Estimate

    @property
    def verdict(self) -> str:
        """Return the verdict in a word or two."""
        return ROW_WORDS[self.state]


class Reply(msgspec.Struct, frozen=True):
    """A question and its verdict."""

    asks: str
    state: State
    sentence: str
    """The finding, with its number, unit, interval, and whom it is about."""
    more: tuple[str, ...] = ()
    """What else has to be known: what is needed, what could change it."""

    @property
    def verdict(self) -> str:
        """Return the verdict in words."""
        return WORDS[self.state]

    @property
    def meaning(self) -> str:
        """Return what the verdict means."""
        return MEANINGS[self.state]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The first screen."""

    question: str
    """The question of the study."""
    model: str
    replies: tuple[Reply, ...]
    rows: tuple[Row, ...]
    left_out: str = ""
    """Which rows there are besides."""
    missing: str
    """What was missing, and why."""
    mend: str = ""
    """What to change, where much is missing."""
    preliminary: str = ""
    """Why the numbers are not final."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what stands below the rows."""
        unshown = any(row.state is State.OPEN for row in self.rows)
        return tuple(filter(None, [NOT_SHOWN if unshown else "", self.left_out]))
