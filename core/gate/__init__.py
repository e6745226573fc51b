"""The gate: check a run against a policy, rule by rule: pass, fail, or not enough data. Missing values never pass.

The door: `read_policy`, then `judge` or `judge_run`, then `junit` and `markdown`.
"""

from __future__ import annotations

from .checks import State, worst
from .deciding import Deciding
from .judge import Outcome, Verdict, followed_in, judge, judge_run
from .policy import FINISHED, Policy, Rule, parse_policy, read_policy
from .requiring import read_requirements, required
from .selecting import selects
from .suggesting import suggested
from .words import chosen_words, junit, markdown, summary

__all__ = [
    "FINISHED",
    "Deciding",
    "Outcome",
    "Policy",
    "Rule",
    "State",
    "Verdict",
    "chosen_words",
    "followed_in",
    "judge",
    "judge_run",
    "junit",
    "markdown",
    "parse_policy",
    "read_policy",
    "read_requirements",
    "required",
    "selects",
    "suggested",
    "summary",
    "worst",
]
