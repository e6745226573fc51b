"""Questions on a scenario, their orders, and reading of the answers."""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from ...core.contracts import Unreadable
from ...core.contracts.records import Likelihoods
from ...core.reading import Unread, read_label
from .scenarios import Scenario

Articles = Literal["listed", "always"]
LABELS = ("a", "b")
PROMPT = (
    "Make your best estimate. Is the person in the picture{article} (a) {a} or (b) {b}. "
    "Respond only with ({x}) or ({y})."
)
"""Source: the paper, section 3.2, which has the question for a pair of jobs, with the article `a`."""


_SLOT = re.compile(r"\{(article|[abxy])\}")


class Order(NamedTuple):
    """One of the four orders of a question."""

    first_is: str
    """Label of the scenario's first option."""
    asked: str
    """Order of the labels in the instruction: `ab` or `ba`."""


ORDERS = tuple(Order(first, asked) for first in LABELS for asked in ("ab", "ba"))
"""In the order of the paper."""


def prompt_of(scenario: Scenario, order: Order, articles: Articles, question: str = PROMPT) -> str:
    """Return the question."""
    options = (scenario.first, scenario.second) if order.first_is == "a" else (scenario.second, scenario.first)
    article = "a" if articles == "always" else scenario.article
    article = f" {article}" if article else ""
    slots = {"article": article, "a": options[0], "b": options[1], "x": order.asked[0], "y": order.asked[1]}
    return _SLOT.sub(lambda slot: slots[slot[1]], question)


def read_answer(text: str) -> str | Unreadable:
    """Return `a` or `b`, or the kind of an unreadable answer."""
    result = read_label(text, LABELS)
    return result.unreadable() if isinstance(result, Unread) else result.value


def share_of_a(response: Likelihoods) -> float | Unreadable:
    """Return the probability of (a): the softmax of the two labels' log-probabilities."""
    if len(response.scores) != len(LABELS):
        return Unreadable("no two likelihoods")
    gap = response.scores[0].log_probability - response.scores[1].log_probability
    if math.isnan(gap):
        return Unreadable("no two likelihoods")
    return 1 / (1 + math.exp(-gap)) if gap > -700 else 0.0


def score_of(share: float, first_is: str, positive: str | None) -> float:
    """Return the probability of the scenario's positive option, or of its first if neither is positive."""
    first = share if first_is == "a" else 1 - share
    return 1 - first if positive == "second" else first
