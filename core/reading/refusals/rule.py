"""What a rule for refusals is: a way to perform a speech act, and what made us write it."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Mark = Literal[
    "inability",
    "unable",
    "unsure",
    "performative",
    "criticism",
    "principle",
    "norm",
    "condemnation",
    "denial",
    "rejection",
    "disagreement",
    "exhortation",
    "evasion",
    "address",
    "regret",
    "identity",
    "no opinion",
    "courtesy",
    "alternative",
    "question",
    "turn",
    "absence",
]
Source = Literal["formulas", "cases", "vision", "llama2", "mistral", "gpt4"]
"""What made us write a rule: published work on refusals or norms, public threads, vision models' manners, or the
answers of a labelled model."""


class Rule(NamedTuple):
    """A way to perform a speech act."""

    name: str
    mark: Mark
    pattern: re.Pattern[str]
    sources: tuple[Source, ...]


def rule(name: str, mark: Mark, pattern: str, *sources: Source) -> Rule:
    """Return a rule.

    Args:
        name: Its name, of its own.
        mark: The speech act.
        pattern: What a sentence in one wording says, as a regular expression.
        sources: What made us write it.
    """
    return Rule(name, mark, re.compile(pattern), sources)
