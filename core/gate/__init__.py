"""The gate: check a run against a policy, rule by rule: pass, fail, or not enough data. Missing values never pass.

The door: `read_policy`, then `judge` or `judge_run`, then `junit` and `markdown`.
"""

from __future__ import annotations

from .checks import State
from .judge import Outcome, Verdict, judge, judge_run, selects, worst
from .policy import FINISHED, Policy, Rule, parse_policy, read_policy
from .words import junit, markdown, summary

__all__ = [
    "FINISHED",
    "Outcome",
    "Policy",
    "Rule",
    "State",
    "Verdict",
    "judge",
    "judge_run",
    "junit",
    "markdown",
    "parse_policy",
    "read_policy",
    "selects",
    "summary",
    "worst",
]
