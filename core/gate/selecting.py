"""Which estimates a rule is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from ..answer.rows import label_of
from ..compare.pair import key_of
from ..contracts.errors import UnknownNameError
from ..contracts.estimates import Estimate
from .policy import Narrowed, Policy, Rule


def selected(rule: Rule, estimates: Iterable[Estimate]) -> list[Estimate]:
    """Return the estimates that a rule is about."""
    if isinstance(rule, Narrowed):
        return [e for e in estimates if key_of(e.metric, e.group) in rule.keys]
    return [
        e
        for e in estimates
        if rule.measure and is_measure(rule, e) and all(selects(v, k, e) for k, v in rule.group.items())
    ]


def is_measure(rule: Rule, e: Estimate) -> bool:
    """Return whether a rule names the measure of an estimate, as in files or as on a report."""
    return matches(e.metric, rule.measure) or matches(label_of(e), rule.measure)


def narrowed(policy: Policy, estimates: Sequence[Estimate], headline: Sequence[Estimate]) -> Policy:
    """Return a policy whose rules without a group are about what a report shows first of their measures.

    Of each measure these are the estimates of the headline, or else all, that have the fewest factors. What a rule was
    about before, of other estimates, it stays about.
    """
    return msgspec.structs.replace(
        policy, rules=tuple(_narrowed(rule, estimates, headline) if _is_bare(rule) else rule for rule in policy.rules)
    )


def _is_bare(rule: Rule) -> bool:
    return bool(rule.measure) and not rule.group


def _narrowed(rule: Rule, estimates: Sequence[Estimate], headline: Sequence[Estimate]) -> Rule:
    keys = set(rule.keys) if isinstance(rule, Narrowed) else set()
    for measure in {e.metric for e in estimates if is_measure(rule, e)}:
        shown = [e for e in headline if e.metric == measure] or [e for e in estimates if e.metric == measure]
        fewest = min(len(e.group) for e in shown)
        keys |= {key_of(e.metric, e.group) for e in shown if len(e.group) == fewest}
    fields = {name: getattr(rule, name) for name in Rule.__struct_fields__}
    return Narrowed(**fields, keys=frozenset(keys))


def ensure_measures(policy: Policy, estimates: Sequence[Estimate]) -> None:
    """Refuse rules whose measure is none of a study's.

    Raises:
        UnknownNameError: naming the measure, and the nearest ones.
    """
    known = list(dict.fromkeys([*(e.metric for e in estimates), *(label_of(e) for e in estimates)]))
    for rule in policy.rules:
        if known and rule.measure and not any(is_measure(rule, e) for e in estimates):
            raise UnknownNameError("measure", rule.measure, known)


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
