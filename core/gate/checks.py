"""The checks of the gate. Each check must be shown to pass, so missing and undefined values fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..compare import Difference
from ..contracts.estimates import Estimate
from ..contracts.words import defined, exact, explained, number, percent
from .policy import Rule


class Check(NamedTuple):
    """One check, in words, and whether it passed."""

    check: str
    found: str
    passed: bool


def check_estimate(rule: Rule, estimate: Estimate, difference: Difference | None) -> Iterator[Check]:
    """Yield every check of a rule on one estimate."""
    on = rule.on or "value"
    value: float | None = getattr(estimate, on)
    found = _found(on, value, estimate)
    if rule.max is not None:
        yield Check(f"{on} at most {exact(rule.max)}", found, value is not None and value <= rule.max)
    if rule.min is not None:
        yield Check(f"{on} at least {exact(rule.min)}", found, value is not None and value >= rule.min)
    if rule.between is not None:
        low, high = rule.between
        yield Check(f"{on} from {exact(low)} to {exact(high)}", found, value is not None and low <= value <= high)
    if rule.max_distance is not None:
        yield _distance(rule.max_distance, on, value, estimate)
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
        return Check(words, "no answers to count", False)
    return Check(words, f"{percent(count / total, 1)} ({count:,} of {total:,})", count / total <= most)


def _found(on: str, value: float | None, estimate: Estimate) -> str:
    if value is None or not defined(value):
        return f"no {on}{f' ({explained(estimate)})' if explained(estimate) else ''}"
    unit = f" {estimate.unit}" if estimate.unit else ""
    return f"{on} {number(value)}{unit}{_interval(estimate) if on == 'value' else ''}"


def _interval(estimate: Estimate) -> str:
    if not defined(estimate.low) or not defined(estimate.high):
        return ""
    return f" [{number(estimate.low)}, {number(estimate.high)}]"


def _distance(most: float, on: str, value: float | None, estimate: Estimate) -> Check:
    words = f"distance of {on} from neutral at most {exact(most)}"
    if estimate.neutral is None:
        return Check(words, "this measure has no neutral value", False)
    passed = value is not None and abs(value - estimate.neutral) <= most
    return Check(words, f"{_found(on, value, estimate)}, neutral {exact(estimate.neutral)}", passed)


def _equivalent(margin: float, estimate: Estimate) -> Check:
    words = f"whole interval within {exact(margin)} of neutral"
    if estimate.neutral is None:
        return Check(words, "this measure has no neutral value", False)
    if estimate.low is None or estimate.high is None:
        return Check(words, f"no interval{f' ({explained(estimate)})' if explained(estimate) else ''}", False)
    inside = estimate.neutral - margin <= estimate.low and estimate.high <= estimate.neutral + margin
    # A value outside its own interval would be a broken metric; it must not pass for near.
    near = estimate.value is not None and abs(estimate.value - estimate.neutral) <= margin
    ends = f"{number(estimate.low)} to {number(estimate.high)}"
    return Check(words, f"{ends}, neutral {exact(estimate.neutral)}", inside and near)


def _increase(rule: Rule, most: float, estimate: Estimate, difference: Difference | None) -> Check:
    on = rule.on or "high"
    words = f"increase of the distance from neutral since {rule.baseline} at most {exact(most)} ({on})"
    if estimate.neutral is None:
        return Check(words, "this measure has no neutral value", False)
    if difference is None or difference.first is None:
        return Check(words, "the baseline does not have this value", False)
    grown = _grown(difference, estimate.neutral)[on]
    if grown is None:
        why = explained(difference.estimate)
        return Check(words, f"no {on} limit of the difference{f' ({why})' if why else ''}", False)
    both = f"{number(difference.first)} then {number(difference.second)}"
    return Check(words, f"{both}, increased by {number(grown)} ({on})", grown <= most)


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
