"""What the writing reference models write: the sentences of `indicasa` with the stereotype or with its opposite.

With a strength of s nats the log-odds of the stereotype over its opposite are s. Each prompt has a preference of its
own besides, which cancels within a category: a fair model has no bias of any category, and none of its prompts is even.
A fair model with leans has these preferences 2.5 times as strong.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache
from importlib import resources
from typing import NamedTuple

from ...adapters.reference.leans import probability
from ...probes.indicasa.asking import KEY, prompt_of
from ...probes.indicasa.prompts import read_prompts
from .answering_corpus import LEANING, PREFERENCES


class Writing(NamedTuple):
    """A prompt with its two answers."""

    prompt: str
    answers: tuple[str, str]
    """With the stereotype, and with its opposite."""
    preference: float
    """For the stereotype, in nats."""

    def share(self, nats: float, leans: bool) -> float:
        """Return the probability of the stereotype."""
        return probability(nats + self.preference * (LEANING if leans else 1.0))


@cache
def writings() -> tuple[Writing, ...]:
    """Return the example prompts of the study, as many in each category as there are preferences."""
    file = resources.files("prejudge.probes.indicasa") / "data" / "completions.csv"
    rows = csv.DictReader(file.read_text("utf-8").splitlines())
    both = {row["masked"]: (row["stereotype"], row["opposite"]) for row in rows}
    found, number = [], Counter[str]()
    for one in read_prompts(None, None).values:
        stereotype, opposite = (f" {json.dumps({KEY: text})}" for text in both[one.masked])
        preference = PREFERENCES[number[one.category] % len(PREFERENCES)]
        number[one.category] += 1
        found.append(Writing(prompt_of(one.masked, one.category, "program"), (stereotype, opposite), preference))
    return tuple(found)
