"""The estimates of a metric: a value with its interval, test, effect size, missing answers and verdict."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from .records import Scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MISSING, POSITION = "missing", "position"
TOPICS = (MISSING, POSITION)
"""Whether answers are missing, and what the place of an option does: neither is bias, and both may pass for it."""
_TOPIC_OF = {"missing": MISSING, "position_bias": POSITION}


class Verdict(StrEnum):
    """What was shown of a value, at the level of its test and after correction."""

    ABOVE = "above"
    """Significantly above the neutral value."""
    BELOW = "below"
    """Significantly below the neutral value."""
    NEAR = "near"
    """Shown to lie within the margin of equivalence, and not shown to differ."""
    OPEN = "open"
    """Neither was shown. This does not show that there is no difference."""


class Caveat(StrEnum):
    """Why a number says less than it seems to. Texts for people are made from these, never read back."""

    FEW_CLUSTERS = "few_clusters"
    """The interval rests on few clusters and may be too narrow."""
    ONE_CLUSTER = "one_cluster"
    """Fewer than two clusters: there is no interval and no test."""
    FEW_LEVELS = "few_levels"
    """A facet that the claim covers, such as words, has few levels."""
    ONE_LEVEL = "one_level"
    """A facet has one level, so that the value is for this one only."""
    EQUAL_REPEATS = "equal_repeats"
    """Most prompts that were repeated had the same answer each time: repeats add no evidence."""
    NO_VARIATION = "no_variation"
    """All clusters agree: there is no interval."""
    P_FLOOR = "p_floor"
    """With so few clusters p cannot come below the level of the test, whatever the answers."""
    UNDEFINED = "undefined"
    """There is no value; `note` says why."""
    UNSTABLE = "unstable"
    """The value depends on few answers, or an end of its interval could not be computed reliably."""
    UNTESTED = "untested"
    """The difference could not be tested; `note` says why."""
    NOT_CORRECTED = "not_corrected"
    """The verdict is not corrected for other tests."""


class Interval(msgspec.Struct, frozen=True):
    """Ends of an interval at a level, and how it was made; without ends there is none."""

    low: float | None = None
    high: float | None = None
    level: float = 0.95
    method: str = ""
    """Such as `cluster bootstrap (template)`."""


class SignificanceTest(msgspec.Struct, frozen=True):
    """A test of the value against neutral; without p nothing was tested."""

    name: str = ""
    statistic: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    """p corrected within `family`."""
    family: str = ""
    correction: str = ""

    @property
    def adjusted(self) -> bool:
        """Return whether the correction changed p; it does not where the family has one test."""
        return self.p_adjusted is not None and self.p_adjusted != self.p


class Effect(msgspec.Struct, frozen=True):
    """A standardised effect size with its interval."""

    name: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Missing(msgspec.Struct, frozen=True):
    """Units left out, by status, and what their answers could change."""

    counts: dict[str, int] = {}
    bound_low: float | None = None
    bound_high: float | None = None
    """Worst-case (Manski) range of the value over every possible answer of the missing units."""

    @property
    def total(self) -> int:
        """Return the number of missing units."""
        return sum(self.counts.values())


class Measure(msgspec.Struct, frozen=True):
    """What a measure is called and means; every estimate of it carries these words."""

    label: str
    """Such as `Stereotype score`."""
    meaning: str = ""
    """One sentence: what the number is, of which units."""
    unit: str = ""
    direction: str = ""
    """What greater values mean, such as `more stereotyping`."""


COMMON: dict[str, Measure] = {
    "missing": Measure("Missing answers", "Share of the units that have no readable answer.", "%", "more is missing"),
    "unreadable": Measure(
        "Unreadable answers", "Share of one kind of unreadable answer among all answers.", "%", "more is unreadable"
    ),
}
"""Measures that every study may have."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One number, the group it is for, and how sure it is. What is undefined is None, never 0."""

    metric: str
    """Name of the measure, such as `z2` or `favouritism`."""
    group: dict[str, Scalar]
    """The cell it is for, such as `{"axis": "height", "gender": "women"}`; empty for the whole study."""
    value: float | None
    neutral: float | None = None
    """What an unbiased model would give; None where no single value is neutral."""
    unit: str = ""
    n: int = 0
    """Units the value rests on."""
    clusters: int | None = None
    interval: Interval = Interval()
    test: SignificanceTest = SignificanceTest()
    effect: Effect = Effect()
    missing: Missing = Missing()
    verdict: Verdict | None = None
    """What was shown; None where nothing was judged, as of a count."""
    caveats: tuple[Caveat, ...] = ()
    facts: dict[str, Scalar] = field(default_factory=dict)
    """What charts, tables and conclusions also need, by names in snake_case: `{"main": True, "category": "jobs"}`."""
    label: str = ""
    meaning: str = ""
    direction: str = ""
    """`label`, `meaning` and `direction` of its `Measure`; a metric that declares `measures` leaves them empty."""
    note: str = ""
    """For people. Nothing reads it."""
    topic: str = ""
    """What it is about, if not the study's question: one of `TOPICS`; it then has a section of its own in a report."""

    @property
    def subject(self) -> str:
        """Return the topic; a metric named `missing` or `position_bias` needs not name it."""
        return self.topic or _TOPIC_OF.get(self.metric, "")

    @property
    def low(self) -> float | None:
        """Return the lower end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float | None:
        """Return the upper end of the interval."""
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
        """Return the lower end of the worst-case range."""
        return self.missing.bound_low

    @property
    def bound_high(self) -> float | None:
        """Return the upper end of the worst-case range."""
        return self.missing.bound_high

    @property
    def shown(self) -> bool:
        """Return whether the value was shown to differ from neutral."""
        return self.verdict in (Verdict.ABOVE, Verdict.BELOW)

    def replace(self, **changes: Any) -> Estimate:
        """Return a copy with other fields; names of the flat form change a field of a part."""
        return Estimate(**(self.__dict__ | _parts(changes, self.__dict__)))

    def flat(self) -> dict[str, Any]:
        """Return a flat mapping of what exported tables show: the parts' fields under names of their own."""
        parts = {name: getattr(getattr(self, part), field) for name, (part, field) in _HOMES.items()}
        return {name: parts[name] if name in parts else getattr(self, name) for name in COLUMNS}

    @classmethod
    def from_flat(cls, **row: Any) -> Estimate:
        """Return the estimate of a flat row: what `flat` gives, or some of it; parts may stand in it as they are."""
        return cls(**_parts(row))


COLUMNS = (
    *("metric", "group", "value", "neutral", "unit", "low", "high", "level", "interval", "n", "clusters", "missing"),
    *("bound_low", "bound_high", "test", "statistic", "p", "p_adjusted", "family", "correction"),
    *("effect", "effect_name", "effect_low", "effect_high", "verdict", "caveats", "facts", "note", "topic"),
)
"""Names of the flat form, in the order of the columns of exported tables."""
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
"""By name in the flat form, the part a field stands in, and its name there."""
_FLAT = frozenset(_HOMES.keys() - _PARTS.keys())


def _parts(row: Mapping[str, Any], before: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the fields of `Estimate` for a row that is flat, wholly or in part; parts keep what stood `before`."""
    made: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        part, field = _HOMES.get(name, ("", ""))
        if not part or (name in _PARTS and isinstance(value, _PARTS[name])):
            made[name] = value
        else:
            nested.setdefault(part, {})[field] = value
    for part, given in nested.items():
        base = made.get(part, before.get(part))
        made[part] = _PARTS[part](**given) if base is None else msgspec.structs.replace(base, **given)
    return made


_REQUIRED = {"metric", "group", "value"}
_DEFAULTS = {f.name: f.default for f in fields(Estimate) if f.name not in _REQUIRED}
_generated = Estimate.__init__


def _init(self: Estimate, **given: Any) -> None:
    """Make an estimate; of the flat fields it had before its parts, with a warning."""
    if not _FLAT.isdisjoint(given) or any(
        type(given[name]) is not kind for name, kind in _PARTS.items() if name in given
    ):
        told = ", ".join(name for name in given if name in _HOMES)
        warnings.warn(
            f"Estimate({told}) with flat fields is deprecated: use interval=Interval(...), "
            "test=SignificanceTest(...), effect=Effect(...), missing=Missing(...).",
            DeprecationWarning,
            stacklevel=2,
        )
        given = _parts(given)
    if not _REQUIRED <= given.keys() <= Estimate.__dataclass_fields__.keys():
        _generated(self, **given)  # says what is missing or unknown
    # A frozen dataclass sets its fields one call each, which takes five times as long.
    self.__dict__.update(_DEFAULTS, facts={})
    self.__dict__.update(given)


Estimate.__init__ = _init  # type: ignore[method-assign]


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
