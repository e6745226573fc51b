"""`gate --suggest`: a policy that a run can decide, a rule for each question of its study.

Each rule is about the headline of a measure. Its limit is that of the question where the interval lies within it or
outside it; else it is the least round one that the interval lies within, so that the run passes its own rule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from ..answer.rows import label_of
from ..catalogue.certificates import flat
from ..catalogue.questions import Question, questions_with
from ..contracts.errors import UsageError
from ..contracts.estimates import Estimate
from ..contracts.sizes import limit_for
from ..scoring.score import Scores
from .checks import State, check_estimate
from .policy import Rule

HEAD = """# Written by `prejudge gate {run} --suggest`.
# The limits were chosen from that run: a gate on it shows nothing of the model. Judge later runs by them.
name = {name}
study = {study}
chosen_from = {run_string}
"""
RULE = """
[[rules]]
name = {name}
measure = {measure}
max_distance = {limit}    # {why}
"""
WITHIN, OUTSIDE = "the limit of the study's question", "the limit of the study's question, which this run exceeds"
ROUND = "the least round limit that this run stays within: {limit} is the study's, and cannot be decided by it"
NO_LIMIT = "the least round limit that this run stays within: the study states none"


def suggested(scores: Scores) -> str:
    """Return the policy as TOML.

    Raises:
        UsageError: no question of the study has a number with an interval.
    """
    study = scores.manifest.study
    rules = list(_rules(scores, questions_with(study.questions, flat(scores.options))))
    if not rules:
        raise UsageError(
            f"nothing can be suggested: no question of {study.name!r} has a judged number with an interval in "
            f"{scores.run.name}. Ask a larger part of the study.",
            code="gate.suggest",
        )
    strings = {"name": json.dumps(study.name), "study": json.dumps(study.name)}
    head = HEAD.format(run=scores.run.name, run_string=json.dumps(scores.run.name), **strings)
    return head + "".join(dict.fromkeys(rules))


def _rules(scores: Scores, questions: Sequence[Question]) -> Iterator[str]:
    every = [e for estimates in scores.estimates.values() for e in estimates]
    for question in questions:
        measured = [e for e in scores.headline if e.metric == question.measure] or [
            e for e in every if e.metric == question.measure
        ]
        fewest = min((len(e.group) for e in measured), default=0)
        judged = [e for e in measured if len(e.group) == fewest and _has_interval(e)]
        if judged and len(judged) == sum(len(e.group) == fewest for e in measured):
            limit, why = _limit(question, judged)
            names = {"name": json.dumps(question.asks), "measure": json.dumps(question.measure)}
            yield RULE.format(limit=f"{limit:g}", why=f"{label_of(judged[0])}; {why}", **names)


def _has_interval(e: Estimate) -> bool:
    ends = (e.value, e.low, e.high, e.neutral)
    return e.verdict is not None and all(end is not None and math.isfinite(end) for end in ends)


def _limit(question: Question, estimates: Sequence[Estimate]) -> tuple[float, str]:
    """Return a limit that the estimates decide, and where it is from."""
    declared = limit_for(estimates[0], question.limit)
    if declared is not None:
        rule = Rule(measure=question.measure, max_distance=declared)
        states = [check.state for e in estimates for check in check_estimate(rule, e, None)]
        if State.FAIL in states:
            return declared, OUTSIDE
        if State.OPEN not in states:
            return declared, WITHIN
    reach = max(abs(end - (e.neutral or 0.0)) for e in estimates for end in (e.low, e.high) if end is not None)
    return _rounded_up(reach), NO_LIMIT if declared is None else ROUND.format(limit=f"{declared:g}")


def _rounded_up(value: float) -> float:
    """Return the least number of two digits that is greater."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1) if value else 1.0
    return float(f"{(math.floor(value / unit) + 1) * unit:.6g}")
