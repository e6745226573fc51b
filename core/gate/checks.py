"""The checks of the gate, each with one of three results: it passes, it fails, or the data are too few to tell.

A check names the values that are allowed. It passes if the whole interval is allowed, and fails if none of it is; of an
interval that is partly allowed more data would tell. A value that is missing passes nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from ..compare import Difference
from ..contracts.estimates import Caveat, Estimate
from ..contracts.words import decimals_for, defined, exact, explained, number, percent, settled
from ..statistics.intervals import exact_interval
from .policy import Rule

WORDS = {
    "value": "value",
    "low": "lower end of the interval",
    "high": "upper end of the interval",
    "bound_low": "least value that the missing answers allow",
    "bound_high": "greatest value that the missing answers allow",
}
"""What `on` of a rule names."""
UNITLESS = ("share", "count")
"""Units that are not said after a number."""


class State(StrEnum):
    """The result of a check, a rule or a gate."""

    PASS = "pass"
    FAIL = "fail"
    OPEN = "not enough data"

    @classmethod
    def of(cls, holds: bool) -> State:
        """Return the result of a check that more data would not change."""
        return cls.PASS if holds else cls.FAIL


def worst(states: Iterable[State]) -> State:
    """Return a failure, or else too few data, or else a pass; of nothing a failure."""
    found = set(states) or {State.FAIL}
    return next(state for state in (State.FAIL, State.OPEN, State.PASS) if state in found)


class More(StrEnum):
    """What more data could do about a failure, as a clause."""

    NOTHING = "more data cannot change this"
    LITTLE = "the whole interval is beyond the limit, so more data are not expected to change this"
    COULD = "its interval reaches the limit, so more data could change this"
    UNKNOWN = "without an interval, whether more data could change this is not known"

    @classmethod
    def reaching(cls, allowed: Allowed, low: float | None, high: float | None) -> More:
        """Return what more data could do about a value whose interval is this."""
        if low is None or high is None or not defined(low) or not defined(high):
            return cls.UNKNOWN
        return cls.LITTLE if allowed.state(low, high) is State.FAIL else cls.COULD


class Check(NamedTuple):
    """One check, in words, and its result."""

    check: str
    found: str
    state: State
    more: More | None = None
    """Of `FAIL`: what more data could do about it."""
    room: float | None = None
    """Of `OPEN`: how far the value is from the nearest limit, where more data would tell on which side it is."""


class Allowed(NamedTuple):
    """The values that a check allows, ends included."""

    least: float = -math.inf
    most: float = math.inf

    def has(self, value: float) -> bool:
        """Return whether a value is allowed."""
        return self.least <= value <= self.most

    def state(self, low: float, high: float) -> State:
        """Return whether all of an interval is allowed, none of it, or part."""
        if self.least <= low and high <= self.most:
            return State.PASS
        return State.FAIL if high < self.least or low > self.most else State.OPEN

    def room(self, value: float) -> float | None:
        """Return how far a value is from the nearest limit; None where it lies on it, so that no data would tell."""
        ends = [abs(value - end) for end in self if math.isfinite(end)]
        return min(ends, default=None) or None


def check_estimate(rule: Rule, estimate: Estimate, difference: Difference | None) -> Iterator[Check]:
    """Yield every check of a rule on one estimate."""
    on, unit = WORDS[rule.on or "value"], _unit(estimate)
    if rule.max is not None:
        yield _inside(f"{on} at most {exact(rule.max)}{unit}", Allowed(most=rule.max), rule, estimate)
    if rule.min is not None:
        yield _inside(f"{on} at least {exact(rule.min)}{unit}", Allowed(least=rule.min), rule, estimate)
    if rule.between is not None:
        low, high = rule.between
        yield _inside(f"{on} from {exact(low)} to {exact(high)}{unit}", Allowed(low, high), rule, estimate)
    if (most := rule.max_distance) is not None:
        yield _near(f"distance of the {on} from neutral at most {exact(most)}{unit}", most, rule, estimate)
    if rule.equivalent_within is not None:
        yield _equivalent(rule.equivalent_within, estimate)
    if rule.max_increase is not None:
        yield _increase(rule, rule.max_increase, estimate, difference)
    for status, most in rule.shares.items():
        yield check_share(status, most, estimate.n + estimate.missing.total, estimate.missing.counts)


def check_share(status: str, most: float, total: int, missing: Mapping[str, int]) -> Check:
    """Check the share of a status among `total`; of all statuses together for `missing`."""
    count = sum(missing.values()) if status == "missing" else missing.get(status, 0)
    words = f"{status} at most {percent(most)}"
    if not total:
        return Check(words, "no answers to count", State.OPEN)
    found = f"{percent(count / total, 1)} ({count:,} of {total:,})"
    state = State.of(count / total <= most)
    allowed = Allowed(most=most)
    return Check(words, found, state, _if_failed(state, allowed, *exact_interval(count, total, 0.95)))


def _if_failed(state: State, allowed: Allowed, low: float | None, high: float | None) -> More | None:
    return More.reaching(allowed, low, high) if state is State.FAIL else None


def _inside(words: str, allowed: Allowed, rule: Rule, estimate: Estimate, neutral: str = "") -> Check:
    """Check the value with its interval, or what `on` names of them alone."""
    on, e = rule.on or "value", estimate
    value: float | None = getattr(e, on)
    found = f"{_found(on, value, e)}{neutral}"
    if value is None or not defined(value):
        return Check(words, found, State.OPEN)
    low, high = (e.bound_low, e.bound_high) if on.startswith("bound") else (e.low, e.high)
    room = None
    if rule.on == "value":
        state = State.of(allowed.has(value))
    elif low is None or high is None or not defined(low) or not defined(high):
        alone = Caveat.ONE_CLUSTER in e.caveats and allowed.has(value)
        state = State.OPEN if alone else State.of(allowed.has(value))
    else:
        state = State.PASS if rule.on and allowed.has(value) else allowed.state(low, high)
        if not rule.on and state is State.PASS and not allowed.has(value):
            state = State.FAIL  # a value outside its own interval would be a broken metric; it must not pass
        counts = state is State.OPEN and not on.startswith("bound")  # of bounds, readable answers would tell
        room = allowed.room(value) if counts else None
    return Check(words, found, state, _if_failed(state, allowed, low, high), room)


def _unit(estimate: Estimate) -> str:
    return f" {estimate.unit}" if estimate.unit and estimate.unit not in UNITLESS else ""


def _found(on: str, value: float | None, e: Estimate) -> str:
    if value is None or not defined(value):
        return f"no {WORDS[on]}{f' ({explained(e)})' if explained(e) else ''}"
    value, low, high, decimals = _numbers(e, value)
    there = on == "value" and defined(low) and defined(high)
    interval = f" (interval {number(low, decimals)} to {number(high, decimals)})" if there else ""
    return f"{WORDS[on]} {number(value, decimals)}{_unit(e)}{interval}"


def _numbers(e: Estimate, value: float | None) -> tuple[float | None, float | None, float | None, int]:
    """Return a value and the interval as they are shown, and their decimals."""
    scale = max((abs(end) for end in (e.low, e.high, value) if end is not None and defined(end)), default=1.0)
    value, low, high = (settled(end, max(scale, 100.0)) for end in (value, e.low, e.high))
    points = _unit(e).strip() in ("%", "percentage points")
    return value, low, high, 1 if points else decimals_for([value, low, high])


def _near(words: str, most: float, rule: Rule, estimate: Estimate) -> Check:
    if (neutral := estimate.neutral) is None:
        return Check(words, "this measure has no neutral value", State.FAIL, More.NOTHING)
    return _inside(words, Allowed(neutral - most, neutral + most), rule, estimate, f", neutral {exact(neutral)}")


def _equivalent(margin: float, estimate: Estimate) -> Check:
    words, e = f"whole interval within {exact(margin)}{_unit(estimate)} of neutral", estimate
    if e.neutral is None:
        return Check(words, "this measure has no neutral value", State.FAIL, More.NOTHING)
    if e.low is None or e.high is None or not defined(e.low) or not defined(e.high):
        return Check(words, f"no interval{f' ({explained(e)})' if explained(e) else ''}", State.OPEN)
    allowed = Allowed(e.neutral - margin, e.neutral + margin)
    state = allowed.state(e.low, e.high)
    # A value outside its own interval would be a broken metric; it must not pass for near.
    if state is State.PASS and (e.value is None or not allowed.has(e.value)):
        state = State.FAIL
    _, low, high, decimals = _numbers(e, e.value)
    found = f"interval {number(low, decimals)} to {number(high, decimals)}{_unit(e)}, neutral {exact(e.neutral)}"
    room = allowed.room(e.value) if state is State.OPEN and e.value is not None else None
    return Check(words, found, state, _if_failed(state, allowed, e.low, e.high), room)


def _increase(rule: Rule, most: float, estimate: Estimate, difference: Difference | None) -> Check:
    on = rule.on or "high"
    words = f"distance from neutral greater than in {rule.baseline} by at most {exact(most)}{_unit(estimate)}"
    words += f" ({WORDS[on]})"
    if estimate.neutral is None:
        return Check(words, "this measure has no neutral value", State.FAIL, More.NOTHING)
    if difference is None or difference.first is None:
        return Check(words, "the baseline does not have this value", State.FAIL, More.NOTHING)
    every = _grown(difference, estimate.neutral)
    grown, least = every[on], every["bound_low" if on.startswith("bound") else "low"]
    if grown is None:
        why = explained(difference.estimate)
        return Check(words, f"no {WORDS[on]} of the difference{f' ({why})' if why else ''}", State.OPEN)
    first, second = settled(difference.first, 100), settled(difference.second, 100)
    found = f"{number(first)} then {number(second)}, increased by {number(settled(grown, 100))} ({WORDS[on]})"
    shown = on in ("value", "low", "bound_low") or least is None or least > most
    state = State.PASS if grown <= most else State.FAIL if shown else State.OPEN
    return Check(words, found, state, _if_failed(state, Allowed(most=most), least, every["high"]))


def _grown(difference: Difference, neutral: float) -> dict[str, float | None]:
    """Return the increase of the distance from neutral, at the value and over the interval of the difference.

    The baseline's own value is taken as it is. Distance is convex in the difference: its maximum is at an end of the
    interval, its minimum at an end or where the run is neutral.
    """
    e, start = difference.estimate, difference.first or 0.0
    before = abs(start - neutral)

    def at(change: float) -> float:
        return abs(start + change - neutral) - before

    found: dict[str, float | None] = dict.fromkeys(("value", "low", "high", "bound_low", "bound_high"))
    if e.value is not None:
        found["value"] = at(e.value)
    # Runs that agree in every cluster have no spread and so no interval, but nothing grew.
    alike = e.value == 0 and e.low is None and (e.clusters or 0) > 1 and e.p == 1
    for low, high in (("low", "high"), ("bound_low", "bound_high")):
        ends = (0.0, 0.0) if alike and low == "low" else (getattr(e, low), getattr(e, high))
        if ends[0] is not None and ends[1] is not None:
            found[high] = max(map(at, ends))
            crosses = ends[0] <= neutral - start <= ends[1]
            found[low] = -before if crosses else min(map(at, ends))
    return found
