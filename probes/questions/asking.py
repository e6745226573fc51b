"""Requests of `questions`, and the reading of answers: one number for each, and what was chosen."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ...core.contracts import Unreadable
from ...core.contracts.declared import LABEL, OUTCOME
from ...core.contracts.records import AnyResponse, Classification, Generation, Likelihoods, Scalar, TokenScores
from ...core.reading import Choice, Unread, read_choice, read_label, read_number, read_yes_no
from ...core.reading.refusals.decide import declines
from .declared import AnswerDeclared
from .design import options_of, values_of

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEAD = "\nAnswer:"
"""What stands between a text and an answer whose likelihood is asked."""
Row = Mapping[str, Scalar]
_WORD = re.compile(r"\w+(?:['-]\w+)*")


def listed(shown: Sequence[str], texts: Mapping[str, str]) -> str:
    """Return the options as the prompt shows them: `A) Hire`."""
    return "\n".join(f"{letter}) {texts[name]}" for letter, name in zip(LETTERS, shown, strict=False))


def candidates(answer: AnswerDeclared, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the answers whose likelihoods are asked, by name."""
    if answer.form == "number" and answer.range is not None:
        return {str(number): str(number) for number in range(answer.range[0], answer.range[1] + 1)}
    return {name: texts.get(name, text) for name, text in options_of(answer).items()}


def read_likelihoods(answer: AnswerDeclared, response: AnyResponse) -> Row | Unreadable:
    """Return the expected number of an answer by the shares of the candidates, and the likeliest of these."""
    if answer.form == "continuation":
        score = response.scores[0] if isinstance(response, Likelihoods) and response.scores else response
        finite = isinstance(score, TokenScores) and math.isfinite(score.log_probability)
        return {OUTCOME: score.log_probability, LABEL: None} if finite else Unreadable("no likelihood")  # type: ignore[union-attr]
    names = list(candidates(answer, {}))
    if not isinstance(response, Likelihoods) or len(response.scores) != len(names):
        return Unreadable("no likelihoods of the answers")
    scores = [score.log_probability for score in response.scores]
    weights = [math.exp(score - max(scores)) for score in scores]
    if not math.isfinite(sum(weights)):
        return Unreadable("a likelihood that is no number")
    values = {name: float(name) for name in names} if answer.form == "number" else values_of(answer)
    mean = sum(weight * values[name] for name, weight in zip(names, weights, strict=True)) / sum(weights)
    return {OUTCOME: mean, LABEL: None if answer.form == "number" else names[weights.index(max(weights))]}


def read_words(answer: AnswerDeclared, response: AnyResponse, shown: Sequence[str], row: Row) -> Row | Unreadable:
    """Return the number that an answer in words becomes, and what it chose."""
    if not isinstance(response, Generation):
        return Unreadable("no answer in words")
    if answer.form == "refusal":
        declined = response.status != "ok" or declines(response.text)
        return {OUTCOME: float(declined), LABEL: "refused" if declined else "answered"}
    if answer.form == "length":
        return {OUTCOME: float(len(_WORD.findall(response.text))), LABEL: None}
    if answer.form == "number" and answer.range is not None:
        number = read_number(response.text, *answer.range)
        return number.unreadable() if isinstance(number, Unread) else {OUTCOME: float(number.value), LABEL: None}
    name = _chosen(answer, response.text, shown, row)
    return name if isinstance(name, Unreadable) else {OUTCOME: values_of(answer)[name], LABEL: name}


def _chosen(answer: AnswerDeclared, text: str, shown: Sequence[str], row: Row) -> str | Unreadable:
    if answer.form == "yes_no":
        decision = read_yes_no(text)
        return decision.unreadable() if isinstance(decision, Unread) else decision.value
    texts = {name: str(row.get(name, option)) for name, option in options_of(answer).items()}
    letter = read_label(text, LETTERS[: len(shown)])
    if not isinstance(letter, Unread):
        return shown[LETTERS.index(letter.value)]
    words = read_choice(text, Choice(options=texts, shown=shown))
    return words.unreadable() if isinstance(words, Unread) else words.value


def read_judgement(answer: AnswerDeclared, response: AnyResponse) -> Row | Unreadable:
    """Return the number of a judgement: of a scale, of yes, or the probability of a classifier's label."""
    if isinstance(response, Classification):
        shares = {label.strip().lower(): share for label, share in response.probabilities.items()}
        if (wanted := answer.label.strip().lower()) not in shares:
            return Unreadable(f"labels {', '.join(sorted(shares))}: none is {wanted!r}")
        return {OUTCOME: float(shares[wanted]), LABEL: max(shares, key=lambda label: shares[label])}
    if not isinstance(response, Generation):
        return Unreadable("no answer in words")
    if answer.range is not None:
        number = read_number(response.text, *answer.range)
        return number.unreadable() if isinstance(number, Unread) else {OUTCOME: float(number.value), LABEL: None}
    decision = read_yes_no(response.text)
    if isinstance(decision, Unread):
        return decision.unreadable()
    return {OUTCOME: float(decision.value == "yes"), LABEL: decision.value}
