"""A run that ends when its policy is decided: bounds that hold at every look take the place of the intervals.

A rule passes or fails as it does elsewhere, by the whole interval. A pass is wrong with half of the error of the level
at most, however many rules there are, since each must pass. Of a failure one is enough, so their error is divided by
the number of estimates that the rules look at.

The bounds follow the units of one facet. A pass also needs the interval of the answers so far, which is over every
facet: a run that asks less must not pass more easily than the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any

import msgspec
import polars as pl

from ..catalogue.study import Catalogue, Study
from ..compare.pair import key_of
from ..contracts import Metric, Stage, Trial
from ..contracts.errors import UsageError
from ..contracts.estimates import Estimate, Key
from ..engine.ending import Ending, Look
from ..engine.observations import with_parts
from ..scoring.score import Scores
from ..statistics.betting import STEPS, Bounds, Mean, bounds_by, evidence_on
from .checks import Check, State, check_estimate, worst
from .courses import Course, course_of, ensure_means
from .policy import SHARES, Policy, Rule
from .selecting import narrowed, selected

FIRST, GROWTH = 5, 1.15
"""Units before the first look, and by how much they grow until the next: a look costs a pass over all answers."""
METHOD = "confidence sequence ({})"


class Sequences(msgspec.Struct, frozen=True):
    """What is known of the estimates of a policy at a look."""

    course: Course
    passing: Mapping[Key, Bounds]
    failing: Mapping[Key, Bounds]
    level: float

    def checks(self, rule: Rule, estimate: Estimate) -> Iterator[Check]:
        """Yield the checks of a rule on an estimate, by bounds that hold at every look, and of a pass by its interval.

        Args:
            rule: with limits.
            estimate: of the answers so far.

        Raises:
            UsageError: the estimate is none that can be followed.
        """
        for check, by_interval in zip(
            self._by_bounds(rule, estimate), check_estimate(rule, estimate, None), strict=True
        ):
            passes = check.state is State.PASS
            yield by_interval._replace(state=State.OPEN) if passes and by_interval.state is not State.PASS else check

    def state(self, policy: Policy, estimates: Mapping[Key, Estimate] | None = None) -> State:
        """Return whether every limit of a policy on an estimate holds, one does not, or data are too few.

        Args:
            policy: whose limits are checked.
            estimates: of the answers so far, for their intervals; None: by the bounds alone.
        """
        return worst(
            check.state
            for key, mean in self.course.followed.items()
            for rule in _limits_for(policy, mean.estimate)
            for check in (
                self._by_bounds(rule, mean.estimate)
                if estimates is None
                else self.checks(rule, estimates.get(key, mean.estimate))
            )
        )

    def _by_bounds(self, rule: Rule, estimate: Estimate) -> Iterator[Check]:
        key = key_of(estimate.metric, estimate.group)
        ensure_means([key], self.course.followed)
        none = Bounds(float("nan"), float("nan"), None, 0)
        passing, failing = (
            check_estimate(rule, self._bounded(estimate, found.get(key, none)), None)
            for found in (self.passing, self.failing)
        )
        for check, other in zip(passing, failing, strict=True):
            if check.state is State.PASS:
                yield check
            else:
                yield other if other.state is State.FAIL else other._replace(state=State.OPEN)

    def _bounded(self, estimate: Estimate, found: Bounds) -> Estimate:
        there = found.value is not None
        low, high = (found.low, found.high) if there else (None, None)
        own = {"low": low, "high": high, "level": self.level, "interval": METHOD.format(self.course.facet)}
        # A mean at the edge of its bounds is within them: they are open, and steps of a grid.
        value = min(max(found.value, found.low), found.high) if found.value is not None else None
        return estimate.replace(value=value, clusters=found.units, **own)


def _limits_for(policy: Policy, estimate: Estimate) -> Iterator[Rule]:
    """Yield the rules with limits for an estimate, with these limits alone."""
    for rule in policy.rules:
        if rule.limits and selected(rule, [estimate]):
            yield msgspec.structs.replace(rule, **dict.fromkeys(SHARES))


def limited_keys(policy: Policy, estimates: Sequence[Estimate]) -> set[Key]:
    """Return the keys of the estimates that a rule has limits for."""
    limited = (e for rule in policy.rules if rule.limits for e in selected(rule, estimates))
    return {key_of(e.metric, e.group) for e in limited}


def ensure_followable(policy: Policy) -> None:
    """Refuse rules of which no bound is known that holds at every look.

    Raises:
        UsageError: naming the rule.
    """
    for rule in policy.rules:
        if rule.limits and (rule.baseline or rule.on in ("value", "bound_low", "bound_high")):
            what = "a baseline" if rule.baseline else f"on = {rule.on!r}"
            raise UsageError(
                f"{rule.name}: {what} has no bound that holds at every look, and this run may end at one. Use "
                "limits of the value with its interval, or run the whole study.",
                code="anytime.rule",
            )
    if not any(rule.limits for rule in policy.rules):
        raise UsageError(
            "the policy has no limit on an estimate, so nothing can be decided early. Shares of missing answers are "
            "checked at the end alone.",
            code="anytime.nothing",
        )


def thresholds(policy: Policy, estimate: Estimate) -> list[float]:
    """Return the values at which a check of an estimate changes its result."""
    found: list[float] = []
    for rule in policy.rules:
        if not (rule.limits and selected(rule, [estimate])):
            continue
        found += [value for value in (rule.max, rule.min, *(rule.between or ())) if value is not None]
        for distance in (rule.max_distance, rule.equivalent_within):
            if distance is not None and estimate.neutral is not None:
                found += [estimate.neutral - distance, estimate.neutral + distance]
    return found


def sequences(
    course: Course,
    policy: Policy,
    metrics: Mapping[str, tuple[Metric, Any]],
    observations: pl.DataFrame,
    steps: int = STEPS,
) -> Sequences:
    """Return the bounds on every estimate that a policy looks at; with `steps` of 1 only as sharp as its limits ask."""
    return sequences_by(course, policy, course.means(metrics, observations), steps)


def sequences_by(course: Course, policy: Policy, means: Mapping[Key, Sequence[Mean]], steps: int = STEPS) -> Sequences:
    """Return the same by the means of every followed estimate over the units that were asked, in order."""
    alpha = 1 - policy.until.level
    known = {
        key: evidence_on(own, thresholds(policy, course.followed[key].estimate), steps) for key, own in means.items()
    }

    def at(share: float) -> dict[Key, Bounds]:
        return {key: bounds_by(own, known[key], share) for key, own in means.items()}

    return Sequences(course, at(alpha), at(alpha / len(course.followed)), policy.until.level)


def sequences_of(scores: Scores, policy: Policy, ending: Ending) -> Sequences:
    """Return the same of a run that could end early, as asked then, for this policy or another."""
    ensure_followable(policy)
    course = course_of(
        scores.stages,
        scores.metrics,
        lambda made, _: limited_keys(policy, made),
        facet=ending.unit,
        seed=ending.seed,
        varied=scores.manifest.design,
    )
    return sequences(course, policy, scores.metrics, scores.last)


class Deciding:
    """Asks whole units in random order, and ends the run when every rule passes or one fails."""

    def __init__(self, catalogue: Catalogue, study: Study, policy: Policy) -> None:
        """Plan the course.

        Raises:
            UsageError: the policy is for another study, or a rule or the study cannot be followed.
        """
        if policy.study and policy.study != study.name:
            raise UsageError(
                f"the policy is for study {policy.study!r}; this is {study.name!r}. Correct it.", code="policy.study"
            )
        ensure_followable(policy)
        instrument = catalogue.instrument(study)
        until = policy.until
        self.policy, self.metrics = policy, instrument.metrics

        def wanted(made: Sequence[Estimate], metric: Metric) -> set[Key]:
            self.policy = narrowed(self.policy, made, metric.headline(made))
            return limited_keys(self.policy, made)

        self._design = instrument.design
        self.course = course_of(instrument.stages(), self.metrics, wanted, until.unit, until.seed, self._design)
        self._units = 0
        self._ending = Ending(
            policy=policy.text,
            unit=self.course.facet,
            sample=self.course.declared,
            level=until.level,
            seed=until.seed,
            units=len(self.course.levels),
            trials=sum(self.course.trials.values()),
        )

    @property
    def ending(self) -> Ending:
        """Return the record so far."""
        return self._ending

    def parts(self, stage: Stage, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Iterator[Trial]]:
        """Yield the trials that are asked before each look; those of no unit come first."""
        for start, end in pairwise([0, *looks(len(self.course.levels))]):
            levels: set[str | None] = {*self.course.levels[start:end], *([] if start else [None])}
            self._units = end
            yield (trial for trial in stage.trials(earlier) if self.course.level_of(trial) in levels)

    def decided(self, observations: pl.DataFrame, trials: int) -> bool:
        """Look, and return whether every rule passes or one fails."""
        observations = with_parts(observations, self._design)
        found = sequences(self.course, self.policy, self.metrics, observations, steps=1)
        state = found.state(self.policy)
        if state is State.PASS:  # intervals take a pass over all answers, and only a pass needs them
            state = found.state(self.policy, self._estimates(observations))
        look = Look(self._units, trials, str(state))
        self._ending = msgspec.structs.replace(self._ending, looks=(*self._ending.looks, look))
        return state is not State.OPEN

    def _estimates(self, observations: pl.DataFrame) -> dict[Key, Estimate]:
        return {
            key_of(e.metric, e.group): e
            for metric, options in self.metrics.values()
            for e in metric.compute(observations, options)
        }


def looks(units: int) -> list[int]:
    """Return after how many units there is a look; the last is after all."""
    found, at = list[int](), FIRST
    while at < units:
        found.append(at)
        at = max(at + 1, ceil(at * GROWTH))
    return [*found, units]
