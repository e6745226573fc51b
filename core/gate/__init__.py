"""The gate: check a run against a policy, rule by rule. Missing values fail.

The door: `read_policy`, then `judge` or `judge_run`, then `junit` and `markdown`.
"""

from __future__ import annotations

from .judge import Outcome, Verdict, judge, judge_run
from .policy import FINISHED, Policy, Rule, parse_policy, read_policy
from .words import junit, markdown

__all__ = [
    "FINISHED",
    "Outcome",
    "Policy",
    "Rule",
    "Verdict",
    "judge",
    "judge_run",
    "junit",
    "markdown",
    "parse_policy",
    "read_policy",
]
