"""What one answer says of a model's fitness: whether it answers the question, and how it fails to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from ..contracts import Unreadable
from ..contracts.records import (
    AnyRequest,
    AnyResponse,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Scalar,
    Text,
)

LENGTH = frozenset({"length", "max_tokens", "max_output_tokens"})
"""Finish reasons of an answer that reached its limit of tokens."""
RUN = 4
"""Words in a row that an echo shares with the question."""
ECHOED = 0.6
"""Share of such runs of an answer's words, from which on it repeats the question."""
_WORD = re.compile(r"\w+")


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, as far as fitness asks about it."""

    status: str
    """`ok`, `refused`, `filtered`, `unreadable` or `failed`."""
    cut: bool = False
    """Whether it reached its limit of tokens."""
    echo: bool = False
    """Whether it repeats the question."""
    empty: bool = False
    """Whether it has no text."""
    misplaced: bool = False
    """Whether it has no text, but reasoning that did not reach the limit: a server put the answer there."""
    values: Mapping[str, Scalar] = {}
    """Its outcomes."""
    mass: float | None = None
    """Probability of all options together, of an answer by likelihood to a question that names them."""
    text: str = ""
    """Its text; where it has none, its reasoning."""

    @property
    def answered(self) -> bool:
        """Return whether the question was answered: a refusal is an answer."""
        return self.status in ("ok", "refused")

    @property
    def counts(self) -> bool:
        """Return whether it says anything of the model: a failed call and a provider's filter do not."""
        return self.status in ("ok", "refused", "unreadable")


def look_at(
    request: AnyRequest | None, response: AnyResponse, outcome: Mapping[str, Scalar] | Unreadable | None
) -> FitAnswer:
    """Return what an answer says of fitness.

    Args:
        request: the question; None where it is not known, so that no echo is found.
        response: the answer, without its reasoning.
        outcome: what the study reads from it; None: it was refused or filtered.
    """
    status = response.status if outcome is None else "unreadable" if isinstance(outcome, Unreadable) else "ok"
    text = response.text if isinstance(response, Generation) else ""
    apart = response.reasoning.strip() if isinstance(response, Generation) and not text.strip() else ""
    values = {} if outcome is None or isinstance(outcome, Unreadable) else outcome
    unread = status == "unreadable" and isinstance(response, Generation)
    return FitAnswer(
        status=status,
        cut=unread and is_cut(response),
        echo=unread and request is not None and is_echo(text, question_text(request)),
        empty=unread and not text.strip(),
        misplaced=unread and bool(apart) and not is_cut(response),
        values=values,
        mass=mass_of(request, response),
        text=text if text.strip() else apart,
    )


def is_cut(response: AnyResponse) -> bool:
    """Return whether an answer in words reached its limit of tokens."""
    return isinstance(response, Generation) and response.finish_reason.lower() in LENGTH


def is_echo(answer: str, question: str) -> bool:
    """Return whether an answer repeats the question: most runs of its words stand in the question in this order."""
    words = _WORD.findall(answer.lower())
    if len(words) < RUN:
        return False
    asked = _runs(_WORD.findall(question.lower()))
    runs = [tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)]
    return sum(run in asked for run in runs) >= ECHOED * len(runs)


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


def question_text(request: AnyRequest) -> str:
    """Return the text that a request asks a model to continue or answer; empty for other requests."""
    if not isinstance(request, Generate | Likelihood):
        return ""
    prompt = request.messages if isinstance(request, Generate) else request.prompt
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part.text for message in prompt for part in message.parts if isinstance(part, Text))


def mass_of(request: AnyRequest | None, response: AnyResponse) -> float | None:
    """Return the probability of all options together that a question names; None of a text that is only continued."""
    if not isinstance(response, Likelihoods) or not isinstance(request, Likelihood) or not response.scores:
        return None
    question = question_text(request).casefold()
    if not all(option.strip().casefold() in question for option in request.continuations):
        return None
    mass = sum(math.exp(min(0.0, score.log_probability)) for score in response.scores)
    return mass if math.isfinite(mass) else None
