"""Which estimates a rule is about."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from ..contracts.estimates import Estimate
from .policy import Rule


def selected(rule: Rule, estimates: Iterable[Estimate]) -> list[Estimate]:
    """Return the estimates that a rule is about."""
    return [
        e
        for e in estimates
        if rule.metric and matches(e.metric, rule.metric) and all(selects(v, k, e) for k, v in rule.group.items())
    ]


def selects(pattern: object, factor: str, estimate: Estimate) -> bool:
    """Return whether an estimate has a level of a factor, with `*` and `?`; an empty one: whether it has no level."""
    if factor not in estimate.group:
        return pattern == ""
    return matches(estimate.group[factor], pattern)


def matches(level: object, pattern: object) -> bool:
    """Return whether a level is the one that is wanted, with `*` and `?`."""
    if level == pattern:
        return True
    return isinstance(pattern, str) and fnmatchcase(str(level), pattern)
