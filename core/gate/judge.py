"""Check a run against a policy. A rule that matches no estimate fails; a missing value or limit never passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from ..answer.needed import advice, distance, need_of
from ..answer.rows import about_of, label_of, levels_in_words
from ..catalogue.study import Catalogue
from ..compare import CompareOptions, Difference, compare_scores
from ..compare.pair import key_of
from ..contracts.errors import UsageError
from ..contracts.estimates import Estimate
from ..engine.observations import UNFINISHED
from ..report.text import group_words
from ..scoring.score import Scores, score
from ..scoring.unproved import unproved_words
from ..store import Store, get_run
from .checks import Check, More, State, check_estimate, check_share, worst
from .deciding import Sequences, sequences_of
from .policy import FINISHED, Policy, Rule
from .selecting import ensure_measures, is_measure, matches, narrowed, selected

DONE = ("finished", "imported")
RUN, BASELINE = "run", "baseline"


class Outcome(msgspec.Struct, frozen=True):
    """One check of one estimate."""

    subject: str
    """Measure and group that were checked, by the names that policies use."""
    check: str
    """What must hold."""
    found: str
    """What was found."""
    state: State
    needed: str = ""
    """Where data are too few: how many more of which facet would tell with 80 % power, if the value stayed."""
    label: str = ""
    """Measure and group as in a report; empty: as `subject`."""
    more: More | None = None
    """Of a failure: what more data could do about it; None where that goes without saying."""

    @property
    def passed(self) -> bool:
        """Return whether it is shown to hold."""
        return self.state is State.PASS

    @property
    def told(self) -> str:
        """Return what was found, with what more data would do where it does not pass."""
        if self.state is State.OPEN:
            return f"{self.found}; not enough data{f'. {self.needed}' if self.needed else ''}"
        return f"{self.found}; {self.more}" if self.more is not None and self.state is State.FAIL else self.found

    @property
    def shown(self) -> str:
        """Return what was checked, in words."""
        return self.label or self.subject


class Verdict(msgspec.Struct, frozen=True):
    """All checks of one rule."""

    rule: str
    outcomes: tuple[Outcome, ...]

    @property
    def state(self) -> State:
        """Return whether a check fails, or else whether data are too few for one; nothing to check is a failure."""
        return worst(outcome.state for outcome in self.outcomes)

    @property
    def passed(self) -> bool:
        """Return whether there was something to check and every check passed."""
        return self.state is State.PASS


Baselines = Mapping[str, Mapping[tuple[Any, ...], Difference]]
"""Differences from each baseline run, by the estimate's key."""


def judge_run(
    catalogue: Catalogue, store: Store, name: str, policy: Policy, assignments: Mapping[str, Any] | None = None
) -> tuple[Scores, list[Verdict]]:
    """Score a run and the baselines that a policy names, and check the run against it.

    Raises:
        UsageError: there is no such run or baseline, they cannot be compared, or the policy is for another study.
    """
    scores = score(catalogue, store, name, assignments, unrecorded=True)
    if policy.study and policy.study != scores.manifest.study.name:
        own = f"{scores.run.name} is of {scores.manifest.study.name!r}"
        raise UsageError(
            f"the policy is for study {policy.study!r}; {own}. Name a run of its study, or correct it.",
            code="policy.study",
        )
    every = [e for estimates in scores.estimates.values() for e in estimates]
    if scores.run.state not in UNFINISHED:  # of a part of the answers a measure may have no number yet
        ensure_measures(policy, every)
    policy = narrowed(policy, every, scores.headline)
    baselines, altered = {}, False
    for other in dict.fromkeys(rule.baseline for rule in policy.rules if rule.baseline):
        if (found := get_run(store, other).name) == scores.run.name:
            raise UsageError(
                f"the baseline {other!r} is the run itself, {found}. Name another run.", code="policy.baseline"
            )
        against = score(catalogue, store, found, assignments)
        altered |= bool(against.unproved)
        if not scores.estimates:
            continue  # nothing to compare yet, and every rule of estimates fails by itself
        compared = compare_scores(catalogue, {BASELINE: against, RUN: scores}, CompareOptions())
        baselines[other] = {_own_key(d.estimate): d for d in compared.differences}
    verdicts = judge(scores, policy, baselines, followed_in(scores, policy))
    return scores, [_unproved(verdict) for verdict in verdicts] if altered or scores.unproved else verdicts


def _unproved(verdict: Verdict) -> Verdict:
    """Mark the checks of numbers that are not those of a head."""
    outcomes = [
        msgspec.structs.replace(o, subject=unproved_words(o.subject), label=unproved_words(o.label))
        for o in verdict.outcomes
    ]
    return Verdict(verdict.rule, tuple(outcomes))


def followed_in(scores: Scores, policy: Policy) -> Sequences | None:
    """Return the bounds that hold at every look, of a run that could end at one.

    Raises:
        UsageError: a rule of the policy has no such bound.
    """
    ending = scores.manifest.ending
    return None if ending is None or not scores.estimates else sequences_of(scores, policy, ending)


def judge(
    scores: Scores, policy: Policy, baselines: Baselines | None = None, followed: Sequences | None = None
) -> list[Verdict]:
    """Return a verdict per rule, in the order of `Policy.names`.

    `followed` are the bounds that hold at every look, of a run that could end at one.
    """
    policy = narrowed(policy, [e for some in scores.estimates.values() for e in some], scores.headline)
    first = [Verdict(FINISHED, (_finished(scores),))] if policy.finished else []
    rules = [(rule, tuple(_outcomes(scores, rule, baselines or {}, followed))) for rule in policy.rules]
    return [*first, *(Verdict(rule.name, outcomes) for rule, outcomes in rules)]


def _own_key(estimate: Estimate) -> tuple[Any, ...]:
    return key_of(estimate.metric, {k: v for k, v in estimate.group.items() if k not in ("run", "against")})


def _finished(scores: Scores) -> Outcome:
    state = scores.run.state
    short = []
    for stage in scores.stages:
        record, there = scores.manifest.stages.get(stage.name), scores.recorded(stage.name)
        if state != "imported" and (record is None or there < record.planned):
            of = f" of the stage {stage.name.replace('_', ' ')}" if len(scores.stages) > 1 else ""
            planned = f"{record.planned:,}" if record else "an unknown number of"
            short.append(f"{there:,} of {planned} answers{of} are recorded")
    passed = state in DONE and not short
    return Outcome(scores.run.name, "every planned answer is recorded", "; ".join([state, *short]), State.of(passed))


def _outcomes(scores: Scores, rule: Rule, baselines: Baselines, followed: Sequences | None) -> Iterator[Outcome]:
    if not rule.measure:
        yield from _answers(scores, rule)
        return
    every = [estimate for estimates in scores.estimates.values() for estimate in estimates]
    named = [e for e in every if is_measure(rule, e)]
    found = selected(rule, named)
    if not found:
        nothing = _nothing(rule, every, named)
        # Of a part of the answers a measure may have no number that all of them give.
        unfinished = scores.run.state in UNFINISHED
        yield msgspec.structs.replace(nothing, state=State.OPEN, more=None) if unfinished else nothing
    advised = set[str]()
    for estimate in found:
        difference = baselines.get(rule.baseline, {}).get(key_of(estimate.metric, estimate.group))
        own = check_estimate(rule, estimate, difference)
        for check in followed.checks(rule, estimate) if followed is not None and rule.limits else own:
            subject = f"{estimate.metric} ({group_words(estimate.group)})"
            label = ": ".join(filter(None, [label_of(estimate), about_of(estimate)]))
            needed = _needed(scores, estimate, check)
            # What more data would do is said of the first check that lacks them: the others differ by their widths.
            yield _outcome(subject, check, needed if not advised else "", label)
            advised |= {needed} - {""}


def _outcome(subject: str, check: Check, needed: str = "", label: str = "") -> Outcome:
    return Outcome(subject, check.check, check.found, check.state, needed, label, check.more)


def _needed(scores: Scores, estimate: Estimate, check: Check) -> str:
    if check.room is None or (need := need_of(scores, [estimate], check.room)) is None:
        return ""
    away = distance(estimate, check.room)
    aim = f"To tell the value from the limit of this rule, {away} away, if it stays where it is"
    return advice(need, estimate, check.room, aim)


def _nothing(rule: Rule, every: list[Estimate], named: list[Estimate]) -> Outcome:
    """Fail a rule that matches no estimate, and list what the run has."""
    if not every:
        return Outcome(_selector(rule), "it matches an estimate", "the run has no estimates", State.OPEN)
    if not named:
        there = f"measures: {', '.join(dict.fromkeys(e.metric for e in every)) or 'none'}"
    elif absent := [name for name in rule.group if all(name not in e.group for e in named)]:
        factors = dict.fromkeys(name for e in named for name in e.group)
        there = f"no groups by {absent[0]!r}, but by {', '.join(factors) or 'nothing'}"
    else:
        groups = list(dict.fromkeys(group_words(e.group) for e in named))
        there = f"groups: {'; '.join(groups[:5])}{' ...' if len(groups) > 5 else ''}"
    found = f"nothing matches; there are {there}"
    return Outcome(_selector(rule), "it matches an estimate", found, State.FAIL, more=More.NOTHING)


def _selector(rule: Rule) -> str:
    return f"{rule.measure} ({group_words(rule.group) if rule.group else 'any group'})"


def _answers(scores: Scores, rule: Rule) -> Iterator[Outcome]:
    """Check shares of the answers themselves, stage by stage; a factor with a pattern is split into its levels."""
    matched = False
    for stage in scores.stages:
        if not set(rule.group) <= set(scores.frames.schema(stage.name)):
            continue
        where = f" in the stage {stage.name.replace('_', ' ')}" if len(scores.stages) > 1 else ""
        frame = scores.lazy(stage.name).select({*rule.group, "status"}).collect(engine="streaming")
        for group, part in _parts(frame, rule.group):
            matched = True
            for status, most in rule.shares.items():
                statuses = part["status"]
                missing = {s: int((statuses == s).sum()) for s in statuses.unique() if s != "ok"}
                check = check_share(status, most, part.height, missing)
                subject = f"answers of the stage {stage.name!r}{f', {group_words(group)}' if group else ''}"
                label = f"answers{where}{f': {levels_in_words(group)}' if group else ''}"
                yield _outcome(subject, check, label=label)
    if not matched:
        selector = f"answers ({group_words(rule.group)})"
        found = "no stage has answers with these factors"
        yield Outcome(selector, "it matches an answer", found, State.FAIL, more=More.NOTHING)


def _parts(frame: pl.DataFrame, group: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    if not group:
        if frame.height:
            yield {}, frame
        return
    for levels, part in frame.partition_by(list(group), as_dict=True, maintain_order=True).items():
        if all(matches(level, pattern) for level, pattern in zip(levels, group.values(), strict=True)):
            yield dict(zip(group, levels, strict=True)), part
