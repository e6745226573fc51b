"""What the first screen of a report holds. Every text is plain: the pages escape it."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ..contracts.estimates import Estimate
from ..contracts.sizes import MEANINGS, POINTS, SHARE, SHORT_WORDS, SURE, WORDS, State
from ..contracts.words import OF, UNDEFINED, decimals_for, defined, exact, fixed, number, percent, settled, share_of

COUNT = "count"
UNBIASED, EQUAL = "unbiased", "no difference"
COMPARED = "compared"
"""Fact of an estimate that is a difference of two runs."""
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
    reference: str = UNBIASED
    """What the neutral value is that of."""
    n: int = 0
    """Answers that it is of; 0: not known."""

    @classmethod
    def of(cls, e: Estimate) -> Number:
        """Return the number of an estimate."""
        factor, unit = (100.0, POINTS if e.neutral == 0 else "%") if e.unit == SHARE else (1.0, e.unit)
        value, low, high, neutral = (
            None if end is None or not defined(end) else settled(factor * end, 100)
            for end in (e.value, e.low, e.high, e.neutral)
        )
        whole = value is not None and low is None and neutral is None and value.is_integer() and unit[:1] != "%"
        hits = share_of(e) if neutral is None and OF in e.facts else ""
        reference = EQUAL if e.facts.get(COMPARED) else UNBIASED
        unit = "" if unit == COUNT else unit
        return cls(value, low, high, neutral, unit, e.interval.level, whole, hits, reference, e.n)

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
        return self.hits or f"{self._text(self.value)} {self.unit}".rstrip()

    @property
    def signed(self) -> str:
        """Return the value without its unit, a difference with its sign."""
        difference = self.neutral == 0 and self.value is not None and self.value > 0 and not self.hits
        return f"{'+' if difference else ''}{self.bare}"

    @property
    def bare(self) -> str:
        """Return the value without its unit."""
        return self.hits or self._text(self.value)

    def _text(self, value: float | None) -> str:
        """Return one of the values: as 0 where the others make it one, as in -0.5 to 0.5."""
        if value is None:
            return UNDEFINED
        ends = [abs(end) for end in (self.value, self.low, self.high) if end is not None and math.isfinite(end)]
        wide = self.unit in ("%", POINTS) or max(ends, default=0.0) >= 10**-self.decimals
        return fixed(value, self.decimals) if wide and math.isfinite(value) else number(value, self.decimals)

    @property
    def spread(self) -> str:
        """Return the interval, or a dash."""
        if self.low is None or self.high is None:
            return UNDEFINED
        unit = f" {self.unit}" if self.hits else ""
        return f"{self._text(self.low)} to {self._text(self.high)}{unit}"

    @property
    def expected(self) -> str:
        """Return what an unbiased model would have, or a dash."""
        return exact(self.neutral)

    @property
    def told(self) -> str:
        """Return everything, such as `66.7 percentage points (95 % interval 36.1 to 97.3; unbiased: 0)`."""
        judged = self.neutral is not None
        parts = [f"{percent(self.level)} interval {self.spread}" if self.low is not None else "no interval" * judged]
        parts += [f"{self.reference}: {self.expected}" if judged else "", f"n = {self.n:,}" if self.n else ""]
        inside = "; ".join(filter(None, parts))
        return f"{self.short} ({inside})" if inside else self.short


def _sentences(clause: str, after: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}.{f' {after}' if after else ''}"


class Row(msgspec.Struct, frozen=True):
    """One number of the first screen."""

    label: str
    meaning: str
    about: str
    """Whom or what it is about; empty for all."""
    number: Number
    state: State
    estimate: Estimate
    section: str = ""
    """What it stands under, where rows are of several models."""

    @property
    def verdict(self) -> str:
        """Return the verdict in a word or two."""
        return SHORT_WORDS[self.state]


class Reply(msgspec.Struct, frozen=True):
    """A question and its verdict."""

    asks: str
    state: State
    finding: str
    """The finding as a clause, without `number`."""
    more: tuple[str, ...] = ()
    """What else has to be known: what is needed, what could change it."""
    number: Number | None = None
    """The number that the finding is told with; None where it names its own, or several."""
    label: str = ""
    """What the number is of: a measure, and a group where it is of one."""
    after: str = ""
    """Sentences that belong to the finding, and follow its number."""
    scope: str = ""
    """What the finding holds for, as the beginning of a sentence."""
    rows: tuple[Row, ...] = ()
    """The numbers behind it, the first of them first."""

    @property
    def sentence(self) -> str:
        """Return the finding with its number, unit, interval, and whom it is about."""
        clause = self.finding if self.number is None else f"{self.finding}: {self.number.told}"
        return _sentences(f"{self.scope}, {clause}" if self.scope else clause, self.after)

    @property
    def statement(self) -> str:
        """Return the finding for a page that shows number and scope beside it."""
        return _sentences(self.finding, self.after)

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
    first: tuple[str, ...] = ()
    """What stands before any verdict: that groups are declined unequally often, and that answers do not vary."""
    replies: tuple[Reply, ...]
    left_out: str = ""
    """Which rows there are besides."""
    also: str = ""
    """Which measures are judged and belong to no question."""
    missing: str
    """What was missing, and why."""
    mend: str = ""
    """What to change, where much is missing."""
    preliminary: str = ""
    """Why the numbers are not final."""
    beside: tuple[str, ...] = ()
    """What other analyses of the run say."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the numbers behind all replies."""
        return tuple(row for reply in self.replies for row in reply.rows)

    @property
    def scope(self) -> str:
        """Return what the findings hold for, as a sentence; empty where they name nothing in common."""
        scopes = {reply.scope for reply in self.replies if reply.scope}
        return _sentences(scopes.pop(), "") if len(scopes) == 1 else ""

    @property
    def record(self) -> dict[str, Any]:
        """Return the answer as plain values, for programs: verdicts by `state`, numbers in the units of estimates."""
        return {
            "question": self.question,
            "model": self.model,
            "preliminary": self.preliminary,
            "first": list(self.first),
            "answers": [
                {"asks": r.asks, "state": r.state, "verdict": r.verdict, "sentence": r.sentence, "more": list(r.more)}
                for r in self.replies
            ],
            "numbers": [
                {
                    **{"label": row.label, "about": row.about, "state": row.state, "verdict": row.verdict},
                    **{"measure": row.estimate.metric, "group": row.estimate.group, "unit": row.estimate.unit},
                    **{"value": row.estimate.value, "low": row.estimate.low, "high": row.estimate.high},
                    **{"neutral": row.estimate.neutral, "n": row.estimate.n},
                }
                for row in self.rows
            ],
            "missing": self.missing,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what stands below the rows."""
        unsaid = all(reply.state is not State.OPEN for reply in self.replies)
        untold = unsaid and any(row.state is State.OPEN for row in self.rows)
        return tuple(filter(None, [SURE if untold else "", self.left_out, self.also, *self.beside]))
