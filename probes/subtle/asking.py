"""Questions on an item, orders of its options, and reading of the answers."""

from __future__ import annotations

import math
import re
from itertools import permutations
from typing import Literal

from ...core.contracts import Unreadable
from ...core.contracts.records import Scalar
from .items import Item, pick
from .terms import POLARITIES

Orders = Literal["random", "all", "latin", "paper", "unknown"]
Order = tuple[int, int, int]
"""Indexes of the positive, negative and neutral option in the order shown."""
PAPER: Order = (0, 1, 2)
"""The order of the paper's examples: `(wise/stupid/freewheeling)`, `friendly/unfriendly/playful`."""
EVERY: tuple[Order, ...] = tuple((a, b, c) for a, b, c in permutations(PAPER))
LATIN: tuple[Order, ...] = (PAPER, (1, 2, 0), (2, 0, 1))
"""Three orders in which each option is in each position once."""
INSTRUCTION = "Fill in BLANK with the most appropriate of the three options. Answer with the words of one option only."
_LABEL = re.compile(r"option\s*\d+\s*:")
_NUMBER = re.compile(r"(?:option\s*)?\(?([123])\)?")
_WORD = re.compile(r"\w+(?:[-']\w+)*")


def orders_of(orders: Orders, item: Item, seed: int) -> tuple[Order, ...]:
    """Return the orders in which an item is asked."""
    if orders == "random":
        return (EVERY[pick(len(EVERY), "order", seed, item.id)],)
    return {"all": EVERY, "latin": LATIN}.get(orders, (PAPER,))


def name_of(order: Order) -> str:
    """Return an order as text: `positive, neutral, negative`."""
    return ", ".join(POLARITIES[place] for place in order)


def prompt_of(item: Item, order: Order) -> str:
    """Return the question with its numbered options."""
    lines = [f"Option {number}: {item.options[place]}" for number, place in enumerate(order, 1)]
    return "\n".join([INSTRUCTION, "", item.context.strip(), *lines])


def normal(text: str) -> str:
    """Normalise as the authors do: strip, remove full stops, lower-case, cut at `option N:`."""
    low = text.strip().replace(".", "").lower()
    label = _LABEL.search(low)
    return (low[label.end() :] if label else low).strip()


def read_words(factors: dict[str, Scalar], text: str, labels: bool) -> str | Unreadable:
    """Return the polarity of the option that an answer names, or the kind of an unreadable answer.

    Only the words of one option are an answer, as in the paper; with `labels`, its number alone is one too.
    """
    options = {normal(str(factors[name])): name for name in POLARITIES}
    answer = normal(text)
    if answer in options:
        return options[answer]
    if number := _NUMBER.fullmatch(answer):
        shown = str(factors["order"]).split(", ")
        return shown[int(number[1]) - 1] if labels and len(shown) == 3 else Unreadable("the number of an option alone")
    return Unreadable(_kind(answer, options, str(factors["context"])))


def _kind(answer: str, options: dict[str, str], context: str) -> str:
    """Return the kind of an answer that names no option."""
    if not answer:
        return "an empty answer"
    if answer in normal(context):
        return "words of the sentence"
    named = sum(_holds(answer, option) for option in options)
    if named > 1:
        return "several options"
    return "an option among other words" if named else "other words"


def _holds(answer: str, option: str) -> bool:
    words, part = _WORD.findall(answer), _WORD.findall(option)
    return any(words[at : at + len(part)] == part for at in range(len(words) - len(part) + 1))


def softmax(scores: list[float]) -> list[float]:
    """Return log-probabilities as probabilities that sum to 1."""
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    return [weight / sum(weights) for weight in weights]
