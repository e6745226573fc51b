"""The estimates of a metric: a value with its interval, test, effect size, missing answers and verdict.

Example:
    >>> import prejudge
    >>> prejudge.estimates.SignificanceTest(name="exact", p=0.02, p_adjusted=0.04).adjusted
    True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from .records import Scalar

if TYPE_CHECKING:
    pass


Key = tuple[Any, ...]
"""Names an estimate in every run: its measure, then name and level of each factor of its group."""
MISSING, POSITION, PREFERENCE = "missing", "position", "preference"
TOPICS = (MISSING, POSITION, PREFERENCE)
"""Missing answers, the effect of an option's position, and a preference for a group in every context alike (its main
effect): none is bias, but each can look like it."""
WITHIN, SIGNIFICANT = "within_margin", "significant"
"""Facts: whether the whole interval lies within the limit around neutral, and whether the value still differs
significantly where it does."""
_TOPIC_OF = {"missing": MISSING, "position_bias": POSITION}


class Verdict(StrEnum):
    """The result of a test of a value, at the test's level and after correction."""

    ABOVE = "above"
    """Significantly above the neutral value."""
    BELOW = "below"
    """Significantly below the neutral value."""
    NEAR = "near"
    """The whole interval lies within the limit around the neutral value, whether or not the value differs."""
    OPEN = "open"
    """Not significantly different, and a difference beyond the limit is not excluded."""


class Caveat(StrEnum):
    """Limits on the meaning of a number. Texts are made from them; nothing reads the texts."""

    FEW_CLUSTERS = "few_clusters"
    """The interval rests on few clusters and may be too narrow."""
    ONE_CLUSTER = "one_cluster"
    """Fewer than two clusters: there is no interval and no test."""
    FEW_LEVELS = "few_levels"
    """A factor that the claim generalises over, such as words, has few levels."""
    ONE_LEVEL = "one_level"
    """A factor has one level, so the value is for this level only."""
    EQUAL_REPEATS = "equal_repeats"
    """Most prompts that were repeated had the same answer each time: repeats add no evidence."""
    ONE_DRAW = "one_draw"
    """The endpoint gave one answer to draws that must differ: each prompt counts once, whatever its samples."""
    NO_VARIATION = "no_variation"
    """All clusters agree: there is no interval."""
    P_FLOOR = "p_floor"
    """With so few clusters, p cannot be below the level of the test, whatever the answers."""
    UNDEFINED = "undefined"
    """There is no value; `note` has the reason."""
    UNSTABLE = "unstable"
    """The value depends on few answers, or an end of its interval could not be computed reliably."""
    UNTESTED = "untested"
    """The difference could not be tested; `note` has the reason."""
    UNEVEN_MISSING = "uneven_missing"
    """Answers are missing significantly more often in some groups than in others, by a test of its own."""
    SELECTED = "selected"
    """Some answers were asked for because the ones before were, for instance, refused: they were chosen by outcome."""
    ENDED_EARLY = "ended_early"
    """The run could end at every look at its answers, which interval and test do not account for; the gate's do."""
    BATCH_DIFFERS = "batch_differs"
    """A sample of the requests was answered differently by single calls than in the provider's batches."""
    NOT_HEEDED = "not_heeded"
    """The answers show that a model did not heed a setting that tells the compared runs apart."""
    UNPROVED = "unproved"
    """The run is not as it was stored, so the value is not that of its head."""
    NOT_CORRECTED = "not_corrected"
    """The verdict is not corrected for other tests."""


class Interval(msgspec.Struct, frozen=True):
    """Limits of an interval, its level and method; without limits there is no interval."""

    low: float | None = None
    high: float | None = None
    level: float = 0.95
    method: str = ""
    """Such as `cluster bootstrap (template)`."""


class SignificanceTest(msgspec.Struct, frozen=True):
    """A test of the value against neutral; without p there was no test."""

    name: str = ""
    statistic: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    """p corrected within `family`."""
    family: str = ""
    correction: str = ""

    @property
    def adjusted(self) -> bool:
        """Return whether the correction changed p; in a family of one test it does not."""
        return self.p_adjusted is not None and self.p_adjusted != self.p


class Effect(msgspec.Struct, frozen=True):
    """A standardised effect size with its interval."""

    name: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Missing(msgspec.Struct, frozen=True):
    """Units without an answer, by status, and the range of values that their answers allow.

    Example:
        >>> import prejudge
        >>> prejudge.Missing({"refused": 3, "unreadable": 1}).total
        4
    """

    counts: dict[str, int] = {}
    bound_low: float | None = None
    bound_high: float | None = None
    """Worst-case (Manski) range of the value over every possible answer of the missing units."""

    @property
    def total(self) -> int:
        """Return the number of missing units."""
        return sum(self.counts.values())


class Measure(msgspec.Struct, frozen=True):
    """Label and meaning of a measure; each of its estimates has these texts."""

    label: str
    """Such as `Stereotype score`."""
    meaning: str = ""
    """One sentence: what is measured, over which units."""
    unit: str = ""
    direction: str = ""
    """Meaning of greater values, such as `more stereotyping`."""


COMMON: dict[str, Measure] = {
    "missing": Measure(
        "Missing answers", "Share of the units that have no readable answer.", "%", "more missing answers"
    ),
    "unreadable": Measure(
        "Unreadable answers",
        "Share of unreadable answers, or of one kind of them, among all answers.",
        "%",
        "more unreadable answers",
    ),
}
"""Measures that every study may have."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value, its group and its uncertainty. An undefined value is None, never 0.

    Example:
        >>> import prejudge
        >>> interval = prejudge.estimates.Interval(low=41.0, high=63.0)
        >>> prejudge.Estimate(metric="share", group={"axis": "height"}, value=52.0, neutral=50.0, interval=interval).low
        41.0
    """

    metric: str
    """Name of the measure, such as `z2` or `favouritism`."""
    group: dict[str, Scalar]
    """Its levels by factor, such as `{"axis": "height", "gender": "women"}`; empty for the whole study."""
    value: float | None
    neutral: float | None = None
    """Value of an unbiased model; None if no single value is neutral."""
    unit: str = ""
    n: int = 0
    """Number of units behind the value."""
    clusters: int | None = None
    interval: Interval = Interval()
    test: SignificanceTest = SignificanceTest()
    effect: Effect = Effect()
    missing: Missing = Missing()
    verdict: Verdict | None = None
    """Result of the test; None for values that are not judged, such as counts."""
    caveats: tuple[Caveat, ...] = ()
    facts: dict[str, Scalar] = {}
    """More values for charts, tables and conclusions, by names in snake_case: `{"main": True, "category": "jobs"}`."""
    label: str = ""
    meaning: str = ""
    direction: str = ""
    """`label`, `meaning` and `direction` of its `Measure`; a metric that declares `measures` leaves them empty."""
    note: str = ""
    """A note for people; no code reads it."""
    topic: str = ""
    """One of `TOPICS`, if not the study's question; a report has a section per topic."""

    def __post_init__(self) -> None:
        """Raise `TypeError` if a part is not of its type, such as an interval that is only the name of its method."""
        for name, kind in _PARTS.items():
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(f"the {name} of an estimate is {value!r}. Give {name}={kind.__name__}(...).")

    @property
    def subject(self) -> str:
        """Return the topic; estimates named `missing` or `position_bias` have it by default."""
        return self.topic or _TOPIC_OF.get(self.metric, "")

    @property
    def low(self) -> float | None:
        """Return the lower limit of the interval."""
        return self.interval.low

    @property
    def high(self) -> float | None:
        """Return the upper limit of the interval."""
        return self.interval.high

    @property
    def p(self) -> float | None:
        """Return p, not corrected."""
        return self.test.p

    @property
    def p_adjusted(self) -> float | None:
        """Return p corrected within its family."""
        return self.test.p_adjusted

    @property
    def bound_low(self) -> float | None:
        """Return the minimum of the worst-case range."""
        return self.missing.bound_low

    @property
    def bound_high(self) -> float | None:
        """Return the maximum of the worst-case range."""
        return self.missing.bound_high

    @property
    def shown(self) -> bool:
        """Return whether the value differs significantly from neutral, and may do so by more than its limit."""
        return self.verdict in (Verdict.ABOVE, Verdict.BELOW)

    @property
    def significant(self) -> bool:
        """Return whether the value differs significantly from neutral, be it by less than its limit."""
        return self.shown or self.facts.get(SIGNIFICANT) is True

    def replace(self, **changes: Any) -> Estimate:
        """Return a copy with changed fields; a column of `flat`, such as `low`, changes its field of a part."""
        return msgspec.structs.replace(self, **_parts(changes, self))

    def flat(self) -> dict[str, Any]:
        """Return the row of an exported table: the fields of the parts are columns with their own names."""
        parts = {name: getattr(getattr(self, part), field) for name, (part, field) in _HOMES.items()}
        return {name: parts[name] if name in parts else getattr(self, name) for name in COLUMNS}

    @classmethod
    def from_flat(cls, **row: Any) -> Estimate:
        """Return the estimate of a row: all or some columns of `flat`; it may also contain whole parts."""
        return cls(**_parts(row))


def with_neutral(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the estimates that have a neutral value, or all of them if none has."""
    return [e for e in estimates if e.neutral is not None] or list(estimates)


COLUMNS = (
    *("metric", "group", "value", "neutral", "unit", "low", "high", "level", "interval", "n", "clusters", "missing"),
    *("bound_low", "bound_high", "test", "statistic", "p", "p_adjusted", "family", "correction"),
    *("effect", "effect_name", "effect_low", "effect_high", "verdict", "caveats", "facts", "note", "topic"),
)
"""Columns of an exported table, in their order."""
_PARTS: dict[str, type[Interval | SignificanceTest | Effect | Missing]] = {
    "interval": Interval,
    "test": SignificanceTest,
    "effect": Effect,
    "missing": Missing,
}
_HOMES = {
    **{"low": ("interval", "low"), "high": ("interval", "high"), "level": ("interval", "level")},
    **{"interval": ("interval", "method"), "test": ("test", "name")},
    **{name: ("test", name) for name in SignificanceTest.__struct_fields__[1:]},
    **{"effect": ("effect", "value"), "effect_name": ("effect", "name")},
    **{"effect_low": ("effect", "low"), "effect_high": ("effect", "high"), "missing": ("missing", "counts")},
    **{"bound_low": ("missing", "bound_low"), "bound_high": ("missing", "bound_high")},
}
"""Part and field by the column."""


def _parts(row: Mapping[str, Any], before: Estimate | None = None) -> dict[str, Any]:
    """Return the fields of `Estimate` for the columns of a row; `before` has the other fields of their parts."""
    values: dict[str, Any] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        part, field = _HOMES.get(name, ("", ""))
        if not part or (name in _PARTS and isinstance(value, _PARTS[name])):
            values[name] = value
        else:
            columns.setdefault(part, {})[field] = value
    for part, changes in columns.items():
        base = values.get(part, getattr(before, part, None))
        values[part] = _PARTS[part](**changes) if base is None else msgspec.structs.replace(base, **changes)
    return values


class Chart(msgspec.Struct, frozen=True):
    """A figure, with a title and a caption that also serve readers who cannot see it."""

    name: str
    title: str
    caption: str
    figure: Any
    """A figure of matplotlib."""


class Listing(msgspec.Struct, frozen=True):
    """A table over several runs: `compare` writes it as files, and its report shows it where a reader opens it."""

    name: str
    """Name of the files, without an ending."""
    title: str
    """Always visible, so it must not contain a stimulus or an answer."""
    caption: str
    frame: Any
    """A polars frame with columns of texts, numbers and booleans, the most important rows first."""


class Example(msgspec.Struct, frozen=True):
    """Exchanges that illustrate a number."""

    title: str
    group: dict[str, Scalar]
    keys: tuple[bytes, ...]
    """Keys of the exchanges, as in the observations."""
    value: float | None = None
    caption: str = ""
